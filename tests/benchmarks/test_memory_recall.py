"""How well recall finds what was said: LoCoMo's questions through the whole memory, a brain a conversation.

Recall@k is the share of the turns that answer a question among the first k, averaged over the questions; by
session the same of the sessions they were said in, in the order of their best turn. The parameters were
tuned on conversations 1 to 5.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
import pytest
from figures import Figure, show
from locomo import conversations

from engine.brain.channels import NewEntry, channel_of
from engine.memory import packets
from engine.memory.brains import entered
from engine.memory.meaning import Meaning
from engine.memory.model import BrainKey
from engine.memory.recalling import Recall
from engine.memory.terms import question_terms, turn_terms
from engine.text.ranking import Bm25, postings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from locomo import Conversation, Question

    from engine import Engine

pytestmark = pytest.mark.benchmark

TUNED = 5
"""Conversations that the parameters were tuned on, the first ones."""

MUST = {"@5 by turn": 0.68, "@10 by turn": 0.78, "@20 by turn": 0.845, "@10 by session": 0.94}

Scores = dict[str, float]


@dataclass(frozen=True)
class Brain:
    """A conversation in a brain of its own, and which turn each packet is."""

    key: BrainKey
    talk: Conversation
    turns: dict[int, int]


async def remembered(engine: Engine, number: int, talk: Conversation) -> Brain:
    """Keep a conversation: each session a channel, each turn a packet."""
    key = BrainKey(user=f"locomo {number}")
    models = [model.id for model in engine.notes.embedders.answering()]
    sessions: dict[int, list[int]] = defaultdict(list)
    for place, turn in enumerate(talk.turns):
        sessions[turn.session].append(place)
    turns: dict[int, int] = {}
    for session, places in sessions.items():
        said = [talk.turns[place] for place in places]
        rows = [packets.NewPacket(NewEntry("user", each.text, each.at, each.speaker)) for each in said]
        async with entered(engine.database, key, make=True) as (connection, brain):
            into = await channel_of(connection, brain, f"session {session}")
            kept = await packets.keep(connection, brain, into, packets.written(rows), models)
        turns |= dict(zip(kept, places, strict=True))
    return Brain(key, talk, turns)


async def recalled(engine: Engine, brain: Brain, question: str) -> list[int]:
    """The places of the turns that are recalled, best first."""
    meant, trouble = await Meaning(engine.notes.embedders).of(question)
    assert not trouble
    async with entered(engine.database, brain.key) as (connection, number):
        ranked, notes = await Recall(engine.settings).ranked(connection, number, question, meant)
    assert not notes
    return [brain.turns[each.id] for each in ranked]


class Words:
    """The yardstick: BM25 alone over the same terms."""

    def __init__(self, talk: Conversation) -> None:
        said = [Counter(turn_terms(f"{turn.speaker} {turn.text}")) for turn in talk.turns]
        lengths = [sum(each.values()) for each in said]
        self._size, self._total = len(said), sum(lengths)
        found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for place, counts in enumerate(said):
            for term, frequency in counts.items():
                found[term].append((place, lengths[place], frequency))
        self._postings = {
            term: [postings(*np.array(rows, np.int32).T).tobytes()] for term, rows in found.items()
        }

    def found(self, question: str) -> list[int]:
        """The places of the turns, best first."""
        chosen = {term: self._postings.get(term, []) for term in question_terms(question)}
        ids, _ = Bm25.of(chosen, self._size, self._total).best(self._size)
        return [int(each) for each in ids]


def scored(talk: Conversation, question: Question, found: Sequence[int]) -> Scores:
    """The share of the question's evidence in what was found, best first."""
    named = [talk.turns[place].name for place in found]
    sessions = list(dict.fromkeys(talk.turns[place].session for place in found))
    said_in = {turn.session for turn in talk.turns if turn.name in question.evidence}
    scores = {
        f"@{k} by turn": len(question.evidence & set(named[:k])) / len(question.evidence) for k in (5, 10, 20)
    }
    return scores | {"@10 by session": len(said_in & set(sessions[:10])) / len(said_in)}


def mean(scores: Sequence[Scores], what: str) -> float:
    return fmean(each[what] for each in scores)


async def test_recall_over_locomo(empty_engine: Engine) -> None:
    engine = empty_engine
    await engine.notes.embedders.settle()
    brains = [await remembered(engine, number, talk) for number, talk in enumerate(conversations(), 1)]
    await engine.memory.embeddings.run_until_idle()
    async with engine.database.connection() as connection:
        await connection.execute("SELECT refresh_memory_statistics()")
    by_recall: list[list[Scores]] = []
    by_words: list[list[Scores]] = []
    unanswered: list[bool] = []
    for number, brain in enumerate(brains):
        words = Words(brain.talk)
        asked = brain.talk.questions
        found = [await recalled(engine, brain, each.text) for each in asked]
        by_recall.append([scored(brain.talk, *each) for each in zip(asked, found, strict=True)])
        by_words.append([scored(brain.talk, each, words.found(each.text)) for each in asked])
        another = brains[(number + 3) % len(brains)]
        unanswered += [not await recalled(engine, another, each.text) for each in asked[::5]]
    show(*_figures(by_recall, by_words), _foreign(unanswered))


def _figures(by_recall: list[list[Scores]], by_words: list[list[Scores]]) -> list[Figure]:
    groups = {
        "all": slice(None),
        f"conversations 1 to {TUNED}": slice(TUNED),
        f"{TUNED + 1} to 10": slice(TUNED, None),
    }
    rows = []
    for group, part in groups.items():
        scores, words = list(chain(*by_recall[part])), list(chain(*by_words[part]))
        for what, least in MUST.items():
            value = mean(scores, what)
            asked = f"recall{what}, {group}, {len(scores):,} questions"
            holds = value >= least or part != slice(None)
            must = f"≥ {least} over all" if part != slice(None) else f"≥ {least}"
            yardstick = f"BM25 alone {mean(words, what):.3f}"
            rows.append(Figure(asked, f"{value:.4f}", yardstick, must, holds))
    return rows


def _foreign(unanswered: list[bool]) -> Figure:
    share = fmean(unanswered)
    what = f"questions on another conversation that find nothing, of {len(unanswered):,}"
    return Figure(what, f"{share:.2f}", "0.04 by the model's distance limit alone", "≥ 0.5", share >= 0.5)
