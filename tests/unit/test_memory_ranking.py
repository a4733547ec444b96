"""Turns are ranked by the formula, each part of it by hand; nothing relevant is an answer."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.memory.ranking import Parameters, Pool, Question, Ranked, rank

WORDS = "abcde"
NONE = Parameters(
    meaning=0, meaning_beside=0, speaker=0, asks=0, length=0, session=0, words_before=0, words_after=0
)
"""What is left are the words of the turn itself."""

OPEN = replace(NONE, coverage=0, known=-10, known_growth=0)
"""The same without a floor for what has a word of the question."""


@dataclass(frozen=True)
class Turn:
    """What is said; `near` is the cosine to the question, None without a vector."""

    text: str = ""
    channel: int = 1
    speaker: int = 0
    near: float | None = None
    asks: bool = False
    confidence: float = 0.5


def pool(*turns: Turn, ids: list[int] | None = None) -> Pool:
    """The turns as they are read from the database: by channel, in the order given."""
    numbers = ids or list(range(1, len(turns) + 1))
    ordered = sorted(zip(numbers, turns, strict=True), key=lambda each: each[1].channel)
    said = [Counter(turn.text.split()) for _, turn in ordered]
    terms = {}
    for word in {word for counts in said for word in counts}:
        places = [place for place, counts in enumerate(said) if word in counts]
        frequencies = np.array([said[place][word] for place in places], np.int32)
        terms[word] = (np.array(places, np.intp), frequencies)
    return Pool(
        ids=np.array([number for number, _ in ordered], np.int32),
        channels=np.array([turn.channel for _, turn in ordered], np.int32),
        speakers=np.array([turn.speaker for _, turn in ordered], np.int32),
        lengths=np.array([sum(counts.values()) for counts in said], np.int32),
        asks=np.array([turn.asks for _, turn in ordered], np.bool_),
        confidence=np.array([turn.confidence for _, turn in ordered], np.float32),
        similarity=np.array([np.nan if turn.near is None else turn.near for _, turn in ordered], np.float32),
        terms=terms,
    )


def asked(words: str = "", **more: Any) -> Question:
    """A question the model reads, if it has vectors to compare."""
    return Question(tuple(dict.fromkeys(words.split())), **{"reads": 1.0, "limit": 0.78, **more})


def found(ranked: list[Ranked]) -> list[int]:
    return [each.id for each in ranked]


def relevances(question: Question, known: Pool, parameters: Parameters) -> dict[int, float]:
    """The similarities as shares of the best one's."""
    ranked = rank(question, known, parameters)
    best = max(each.similarity for each in ranked)
    return {each.id: each.similarity / best for each in ranked}


def gain(frequency: float, length: float, average: float, weights: Parameters) -> float:
    """What a word of rarity 1 adds."""
    damping = weights.k1 * (1 - weights.b + weights.b * length / average)
    return frequency / (frequency + damping)


def test_words_are_scored_by_bm25() -> None:
    known = pool(Turn("a a c c"), Turn("a b"), Turn("c c c c c c"))
    rare, common = math.log1p(2.5 / 1.5), math.log1p(1.5 / 2.5)
    first = common * gain(2, 4, 4, OPEN)
    second = common * gain(1, 2, 4, OPEN) + rare * gain(1, 2, 4, OPEN)
    assert relevances(asked("a b", reads=0), known, OPEN) == pytest.approx({2: 1, 1: first / second})


def test_the_words_of_the_turns_beside_count_a_little_within_a_conversation_only() -> None:
    weights = replace(OPEN, words_before=0.5, words_after=0.2)
    known = pool(Turn("c"), Turn("a"), Turn("c"), Turn("c"), Turn("c", channel=2))
    best = gain(1, 1, 1, weights)
    expected = {2: 1, 3: gain(0.5, 1, 1, weights) / best, 1: gain(0.2, 1, 1, weights) / best}
    assert relevances(asked("a", reads=0), known, weights) == pytest.approx(expected)
    alone = pool(Turn("a"), Turn("c", channel=2))
    assert found(rank(asked("a", reads=0), alone, weights)) == [1]


def test_meaning_counts_from_what_is_unrelated_to_the_nearest() -> None:
    weights = replace(OPEN, meaning=0.5)
    known = pool(Turn("a", near=0.6), Turn("a", near=0.3), Turn("a", near=0.0))
    assert relevances(asked("a"), known, weights) == pytest.approx({1: 1, 2: 0.75, 3: 0.5}, abs=1e-6)
    # Of a model that puts all texts near to each other.
    assert relevances(asked("a", unrelated=0.7), known, weights)[2] == pytest.approx(0.75)
    close = pool(Turn("a", near=0.9), Turn("a", near=0.8))
    assert relevances(asked("a", unrelated=0.3), close, weights)[2] == pytest.approx(0.5 + 0.25)


def test_the_meaning_of_the_turns_beside_counts_a_little() -> None:
    weights = replace(OPEN, meaning=1, meaning_beside=0.2)
    known = pool(
        Turn("a", near=0.3), Turn("a", near=0.6), Turn("a", near=0.3), Turn("a", channel=2, near=0.3)
    )
    best = 1 + 0.2 * (0.5 + 0.5)
    expected = {2: 1, 1: 0.7 / best, 3: 0.7 / best, 4: 0.5 / best}
    assert relevances(asked("a"), known, weights) == pytest.approx(expected, abs=1e-6)


def test_a_turn_without_a_vector_is_as_near_as_the_mean() -> None:
    known = pool(Turn("a", near=0.6), Turn("a", near=0.2), Turn("a"))
    relevance = relevances(asked("a"), known, replace(OPEN, meaning=1))
    assert relevance == pytest.approx({1: 1, 3: 2 / 3, 2: 1 / 3}, abs=1e-6)


def test_meaning_counts_less_the_less_the_model_reads_the_question() -> None:
    known = pool(Turn("a", near=0.1), Turn("a a a", near=0.9))
    weights = replace(OPEN, meaning=1, b=0)
    by_words = gain(1, 1, 2, weights) / gain(3, 3, 2, weights)
    for reads in (0.0, 0.25, 1.0):
        expected = (1 - reads) * by_words + reads / 9
        assert relevances(asked("a", reads=reads), known, weights)[1] == pytest.approx(expected)


def test_who_is_named_who_only_asks_and_how_long_it_is() -> None:
    known = pool(Turn("a", speaker=7), Turn("a", speaker=8), Turn("a", speaker=8, asks=True))
    weights = replace(OPEN, speaker=0.2, asks=0.1)
    named = relevances(asked("a", reads=0, named=frozenset({8})), known, weights)
    assert named == pytest.approx({2: 1, 3: 1.1 / 1.2, 1: 1 / 1.2})
    lengths = pool(Turn("a c c c"), Turn("a c"))
    weights = replace(OPEN, length=0.1, b=0)
    long, short = 1 + 0.1 * math.log1p(4 / 3), 1 + 0.1 * math.log1p(2 / 3)
    assert relevances(asked("a", reads=0), lengths, weights)[2] == pytest.approx(short / long)


def test_the_best_of_a_conversation_lifts_the_others_of_it() -> None:
    known = pool(Turn("a c"), Turn("a b"), Turn("a c", channel=2))
    relevance = relevances(asked("a b", reads=0), known, replace(OPEN, session=0.5))
    alone = relevances(asked("a b", reads=0), known, OPEN)
    other = alone[3] * 1.5
    assert relevance == pytest.approx({2: 1, 1: (alone[1] + 0.5) / 1.5, 3: other / 1.5})


def test_confidence_decides_between_equal_turns_and_the_lower_id_when_that_is_equal_too() -> None:
    known = pool(
        Turn("a", confidence=0.15), Turn("a"), Turn("a", confidence=0.7), Turn("a"), ids=[1, 9, 5, 4]
    )
    ranked = rank(asked("a", reads=0), known)
    assert found(rank(asked("a", reads=0), known, OPEN)) == [5, 4, 9, 1]
    assert all(each.score == pytest.approx(each.similarity * each.confidence) for each in ranked)


def test_the_best_is_as_near_as_the_nearest_or_tells_as_much() -> None:
    near = rank(asked("a b"), pool(Turn("a", near=0.6), Turn("c", near=0.1)))
    assert near[0].similarity == pytest.approx(0.6)
    assert near[0].distance == pytest.approx(0.4)
    (identifier,) = rank(asked("a"), pool(Turn("a", near=-0.1)))
    assert identifier.similarity == pytest.approx(1)
    half_read = rank(asked("a b", reads=0.5), pool(Turn("c a", near=0.9), Turn("c b", near=0.1)))
    assert half_read[0].similarity == pytest.approx(0.5)
    (unseen,) = rank(asked("a"), pool(Turn("a")))
    assert (unseen.similarity, unseen.distance) == (pytest.approx(1), None)


@pytest.mark.parametrize("asks", [False, True])
def test_the_only_turn_of_a_brain_is_found_by_its_meaning(asks: bool) -> None:
    assert found(rank(asked("a"), pool(Turn("c", near=0.5, asks=asks)))) == [1]


def test_a_turn_beside_one_that_is_relevant_is_relevant_too() -> None:
    told = [Turn("c", near=0.0), Turn("c", near=0.0), Turn("c", near=0.6), Turn("c", near=0.0)]
    known = pool(*told, Turn("c", channel=2, near=0.0))
    assert sorted(found(rank(asked("a"), known))) == [2, 3, 4]


def test_what_is_neither_near_nor_tells_enough_of_the_question_is_left_out() -> None:
    others = [Turn("c", channel=9 + number, near=0.0) for number in range(20)]
    near = Turn("c", near=0.6)
    common = [Turn("a", channel=30 + number, near=0.1) for number in range(40)]
    rare = Turn("b", channel=2, near=0.1)
    ranked = found(rank(asked("a b e"), pool(near, rare, *common, *others)))
    assert sorted(ranked) == [1, 2]
    # What the model does not read is found by any of its words.
    ranked = found(rank(asked("a b e", reads=0), pool(near, rare, *common, *others)))
    assert set(ranked) == set(range(2, 43))


def test_of_many_turns_one_must_be_nearer_for_anything_to_be_known() -> None:
    few = [Turn("c", near=0.3), *[Turn("c", channel=2, near=0.0)] * 20]
    many = [Turn("c", near=0.3), *[Turn("c", channel=2, near=0.0)] * 500]
    assert found(rank(asked("a"), pool(*few))) == [1]
    assert rank(asked("a"), pool(*many)) == []
    assert found(rank(asked("a"), pool(replace(many[0], near=0.45), *many[1:]))) == [1]
    # It needs not be as near where what it says is of the question.
    assert found(rank(asked("a b"), pool(replace(many[0], text="a b"), *many[1:]))) == [1]


def test_nearer_is_meant_as_the_model_puts_texts_near() -> None:
    others = [Turn("c", channel=2, near=0.6)] * 500
    close = asked("a", limit=0.3, unrelated=0.3)
    assert rank(close, pool(Turn("c", near=0.78), *others)) == []
    assert found(rank(close, pool(Turn("c", near=0.88), *others))) == [1]


def test_beyond_a_thousand_turns_no_more_is_asked() -> None:
    weights = Parameters()
    wanted = weights.known + weights.known_growth * math.log(1_000)
    turns = [Turn("c", near=wanted + 0.001), *[Turn("c", channel=2, near=0.0)] * 5_000]
    assert found(rank(asked("a"), pool(*turns))) == [1]
    assert rank(asked("a"), pool(replace(turns[0], near=wanted - 0.001), *turns[1:])) == []


def test_a_turn_that_has_no_vector_yet_is_found_by_its_words() -> None:
    others = [Turn("c", channel=2, near=0.0)] * 500
    assert rank(asked("a b d e"), pool(Turn("a", near=0.0), *others)) == []
    assert found(rank(asked("a b d e"), pool(Turn("a"), *others))) == [1]


@pytest.mark.parametrize("reads", [0.0, 1.0])
def test_nothing_is_found_in_nothing_and_by_nothing(reads: float) -> None:
    assert rank(asked("a", reads=reads), pool()) == []
    assert rank(asked("a", reads=reads), pool(Turn("c"), Turn("d"))) == []
    assert rank(asked("", reads=reads), pool(Turn("c"), Turn("d"))) == []


def test_a_question_without_words_is_answered_by_meaning() -> None:
    assert found(rank(asked(""), pool(Turn("c", near=0.5), Turn("c", channel=2, near=0.1)))) == [1]
    # Then length is not weighed against a fraction of meaning.
    known = pool(Turn("c", near=0.9), Turn("c c c c c c", channel=2, near=0.5))
    assert found(rank(asked("", reads=0.2), known)) == [1, 2]


nearness = st.one_of(st.none(), st.floats(-1, 1, width=32))
turns = st.builds(
    Turn,
    text=st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join),
    channel=st.integers(1, 3),
    speaker=st.integers(-1, 2),
    near=nearness,
    asks=st.booleans(),
    confidence=st.sampled_from([0.0, 0.15, 0.5, 0.7, 1.0]),
)
brains = st.lists(turns, min_size=1, max_size=12)
questions = st.builds(
    Question,
    words=st.lists(st.sampled_from(WORDS + "z"), unique=True, max_size=4).map(tuple),
    named=st.frozensets(st.integers(-1, 2), max_size=2),
    reads=st.floats(0, 1),
    limit=st.sampled_from([0.0, 0.21, 0.78, 1.0]),
    unrelated=st.sampled_from([0.32, 1.0]),
)


@given(brains, questions)
def test_figures_are_figures_and_in_order(brain: list[Turn], question: Question) -> None:
    ranked = rank(question, pool(*brain))
    assert len(set(found(ranked))) == len(ranked)
    for each in ranked:
        assert 0 < each.similarity <= 1
        assert each.score == pytest.approx(each.similarity * each.confidence, abs=1e-6)
        near = brain[each.id - 1].near
        assert each.distance == (None if near is None else pytest.approx(1 - near, abs=1e-6))
    assert ranked == sorted(ranked, key=lambda each: (-each.score, each.id))


@given(brains, questions, st.data())
def test_a_turn_that_is_believed_more_never_ranks_lower(
    brain: list[Turn], question: Question, data: st.DataObject
) -> None:
    chosen = data.draw(st.integers(0, len(brain) - 1))
    believed = data.draw(st.floats(brain[chosen].confidence, 1))
    more = [*brain[:chosen], replace(brain[chosen], confidence=believed), *brain[chosen + 1 :]]
    before, after = found(rank(question, pool(*brain))), found(rank(question, pool(*more)))
    if chosen + 1 in before:
        assert after.index(chosen + 1) <= before.index(chosen + 1)


@given(brains, questions, st.permutations([1, 2, 3]))
@example([Turn("a", 1), Turn("a", 2)], asked("a"), [2, 1, 3])
def test_the_order_of_conversations_changes_nothing(
    brain: list[Turn], question: Question, channels: list[int]
) -> None:
    moved = [replace(turn, channel=channels[turn.channel - 1]) for turn in brain]
    here = {each.id: each.score for each in rank(question, pool(*brain))}
    there = {each.id: each.score for each in rank(question, pool(*moved))}
    assert there == pytest.approx(here, rel=1e-6)


@given(brains, questions)
def test_the_same_turn_again_in_another_conversation_is_found_where_the_first_is(
    brain: list[Turn], question: Question
) -> None:
    again = [*brain, *(replace(turn, channel=turn.channel + 3) for turn in brain)]
    ranked = {each.id: each.score for each in rank(question, pool(*again))}
    for number in range(1, len(brain) + 1):
        assert (number in ranked) == (number + len(brain) in ranked)
        assert ranked.get(number) == pytest.approx(ranked.get(number + len(brain)))
