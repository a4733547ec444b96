"""Ranking of turns: words with those of the turns beside them, meaning with theirs, who said it, and where.

Pure numbers: no database, no model. What is ranked is a whole brain, as arrays. The weights were tuned on
LoCoMo's conversations 1 to 5 and are the same for all; `tests/benchmarks/test_memory_recall.py` tells what
they give on 6 to 10 beside them. The floor (`coverage`, `known` and what follows) was chosen on all ten.
BM25F with the neighbouring turns as further fields: Robertson and Zaragoza, "The Probabilistic Relevance
Framework: BM25 and Beyond" (2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.memory.model import CONFIDENCE, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]


_MEASURED = 1_000
"""Turns of a brain up to which the floor grows: with more nothing was measured."""


ORDINARY = CONFIDENCE[Kind.RAW]
"""The confidence of a turn that corrects nothing."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What counts how much. Each list is brought to 0..1 before it is weighed."""

    k1: float = 0.6
    """How soon more of the same term stops to count."""
    b: float = 0.2
    """How far a long turn is held to need more of a term."""
    words_before: float = 0.5
    """What a word in the turn before counts: an answer seldom repeats the words of its question."""
    words_after: float = 0.2
    """The same of the turn after."""
    meaning: float = 0.5
    """The share of meaning, words have the rest; less where the model hardly reads the question."""
    meaning_beside: float = 0.2
    """What the meaning of a turn beside counts, as share of a mean."""
    speaker: float = 0.2
    """Added where the question names who said it."""
    asks: float = 0.1
    """Taken off a turn that only asks: what it asks for stands elsewhere."""
    length: float = 0.1
    """Added for each e-fold of a turn's length over the mean: a short one seldom holds a fact."""
    session: float = 0.7
    """The share of the best turn of the same conversation that is added to each of its turns."""
    coverage: float = 0.2
    """How much of what the question tells (0..1, by rarity) makes a turn relevant whatever the model says, if
    anything is known of the question."""
    known: float = 0.05
    """How near something must be for anything to be known of the question, in a brain of one turn. What the
    brain has of the question's words counts as nearness by `known_words`."""
    known_growth: float = 0.06
    """Added to that for each e-fold of turns: of many that have nothing to do with it some are near. On
    LoCoMo about 0.6 of the questions on another conversation find nothing, and less than 0.01 of those on
    their own, with 10, 30, 100, 300 or 600 turns; what fits 600 and does not grow forgets 0.17 with 10."""
    known_words: float = 0.3
    """What the best turn's share of the question's words, with those beside it, adds to nearness."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `words` are its terms without those that only ask; `named` the hashes of speakers who
    are named in it. `reads` tells how far (0..1) the model reads it, `limit` the cosine distance beyond which
    a turn is not relevant by meaning, `unrelated` that of texts that have nothing to do with each other.
    """

    words: tuple[str, ...]
    named: frozenset[int] = frozenset()
    reads: float = 0.0
    limit: float = 0.0
    unrelated: float = 1.0


@dataclass(frozen=True, slots=True)
class Pool:
    """The packets of a brain as arrays of equal length, sorted by channel, time and id. `similarity` is the
    cosine to the question, NaN without a vector; `terms` has, for each term of the question that any packet
    has, the places of those packets and how often it stands in them.
    """

    ids: Ints
    channels: Ints
    speakers: Ints
    lengths: Ints
    asks: NDArray[np.bool_]
    confidence: NDArray[np.float32]
    similarity: NDArray[np.float32]
    terms: Mapping[str, tuple[NDArray[np.intp], NDArray[np.int32]]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A turn that answers. `similarity` (0..1) is its relevance: that of the best is as near as the nearest
    is to the question, the others' in proportion, and less of a correction that is only beside an answer.
    `score` is that times confidence: turns are ranked by it.
    """

    id: int
    similarity: float
    confidence: float
    score: float
    distance: float | None


def rank(question: Question, pool: Pool, parameters: Parameters | None = None) -> list[Ranked]:
    """The relevant turns, best first, and of equal ones the lowest id first. None is an answer."""
    weights = parameters or Parameters()
    if not len(pool.ids):
        return []
    beside = _Beside.of(pool.channels)
    told = _Told.of(question, pool, beside)
    evidence = _evidence(question, pool, told, weights)
    relevant = beside.too(evidence)
    if not relevant.any():
        return []
    relevance = _relevance(question, pool, beside, told, weights)
    best = float(relevance[relevant].max()) or 1.0
    believed = _believed(pool, evidence)
    score = relevance / best * _strength(question, pool, told) * believed
    similarity = np.minimum(1.0, score / np.where(pool.confidence > 0, pool.confidence, 1.0))
    places = np.flatnonzero(relevant & (score > 0))
    order = places[np.lexsort((pool.ids[places], -score[places]))]
    return [
        Ranked(
            int(pool.ids[place]),
            float(similarity[place]),
            float(pool.confidence[place]),
            float(score[place]),
            None if np.isnan(pool.similarity[place]) else 1 - float(pool.similarity[place]),
        )
        for place in order
    ]


@dataclass(frozen=True, slots=True)
class _Beside:
    """The turns before and after each in the same channel."""

    before: NDArray[np.bool_]
    after: NDArray[np.bool_]

    @classmethod
    def of(cls, channels: Ints) -> _Beside:
        same = channels[1:] == channels[:-1]
        return cls(np.concatenate(([False], same)), np.concatenate((same, [False])))

    def previous(self, values: Floats) -> Floats:
        """Each turn's value of the turn before; 0 where there is none. The last axis is that of turns."""
        return np.where(self.before, np.roll(values, 1, axis=-1), 0.0)

    def following(self, values: Floats) -> Floats:
        """The same of the turn after."""
        return np.where(self.after, np.roll(values, -1, axis=-1), 0.0)

    def too(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The marked turns with those before and after each."""
        numbers = marked.astype(np.float64)
        return (numbers + self.previous(numbers) + self.following(numbers)) > 0


@dataclass(frozen=True, slots=True)
class _Told:
    """How often each word of the question stands in each turn (a row a word), in the turn before and in the
    one after, and how rare each word is (idf, Lucene's form).
    """

    here: Floats
    before: Floats
    after: Floats
    rarity: Floats

    @classmethod
    def of(cls, question: Question, pool: Pool, beside: _Beside) -> _Told:
        size = len(pool.ids)
        here = np.zeros((len(question.words), size))
        for row, word in enumerate(question.words):
            places, frequencies = pool.terms.get(word, (np.empty(0, np.intp), np.empty(0, np.int32)))
            here[row, places] = frequencies
        having = (here > 0).sum(axis=1)
        rarity = np.log1p((size - having + 0.5) / (having + 0.5))
        return cls(here, beside.previous(here), beside.following(here), rarity)

    def share(self, counts: Floats) -> Floats:
        """The share of the question's words (0..1, by rarity) that stand in each turn."""
        covered: Floats = (self.rarity[:, None] * (counts > 0)).sum(axis=0)
        return covered / (float(self.rarity.sum()) or 1.0)


def _words(pool: Pool, told: _Told, weights: Parameters) -> Floats:
    """BM25F over the turns and those beside them, brought to 0..1."""
    mixed = told.here + weights.words_before * told.before + weights.words_after * told.after
    longer = pool.lengths / max(1.0, float(pool.lengths.mean()))
    damping = weights.k1 * (1 - weights.b + weights.b * longer)
    return _to_one((told.rarity[:, None] * mixed / (mixed + damping)).sum(axis=0))


def _meaning(question: Question, pool: Pool, beside: _Beside, weights: Parameters) -> Floats:
    """Nearness of the turns and of those beside them, from what is unrelated, or farther (0), to the nearest
    (1). A turn that has no vector is as near as the mean.
    """
    near = pool.similarity.astype(np.float64)
    near = np.where(np.isnan(near), np.nanmean(near), near)
    spread = _to_one(near - min(float(near.min()), 1 - question.unrelated))
    return _to_one(spread + weights.meaning_beside * (beside.previous(spread) + beside.following(spread)))


def _relevance(question: Question, pool: Pool, beside: _Beside, told: _Told, weights: Parameters) -> Floats:
    words = _words(pool, told, weights)
    share = weights.meaning * question.reads if not np.isnan(pool.similarity).all() else 0.0
    if not words.any() and share:
        share = 1.0
    relevance = (1 - share) * words
    if share:
        relevance = relevance + share * _meaning(question, pool, beside, weights)
    if question.named:
        relevance = relevance + weights.speaker * np.isin(pool.speakers, list(question.named))
    relevance = relevance - weights.asks * pool.asks
    relevance = relevance + weights.length * np.log1p(pool.lengths / max(1.0, float(pool.lengths.mean())))
    _, session = np.unique(pool.channels, return_inverse=True)
    best = np.full(session.max() + 1, -np.inf)
    np.maximum.at(best, session, relevance)
    return np.maximum(relevance + weights.session * best[session], 0.0)


def _believed(pool: Pool, evidence: NDArray[np.bool_]) -> Floats:
    """How far each turn is believed to answer. One that is only beside the evidence is given for its context:
    it may correct something else, so it counts as an ordinary turn at most.
    """
    confidence = pool.confidence.astype(np.float64)
    return np.where(evidence, confidence, np.minimum(confidence, ORDINARY))


def _evidence(question: Question, pool: Pool, told: _Told, weights: Parameters) -> NDArray[np.bool_]:
    """Which turns are evidence: near enough in meaning or with enough of the question's words in them. None,
    where nothing is known of the question. Of one that the model hardly reads, any word will do.
    """
    near = _nearness(question, pool)
    covered = told.share(told.here)
    # As long as few have vectors, words have to do.
    seen = 1 - float(np.isnan(pool.similarity).mean())
    wanted = weights.coverage * question.reads * seen
    evidence = (covered >= wanted) & (covered > 0)
    if question.reads:
        evidence |= pool.similarity >= 1 - question.limit  # of one without a vector that is not so
    # Nobody can say how near a turn is that has no vector yet.
    unseen = bool((evidence & np.isnan(pool.similarity)).any())
    if not unseen and not _known(question, near, told, weights):
        return np.zeros(len(near), np.bool_)
    return evidence


def _known(question: Question, near: Floats, told: _Told, weights: Parameters) -> bool:
    """Whether what is nearest, and what tells most of the question, are more than chance."""
    turns = min(len(near), _MEASURED)
    wanted = weights.known + weights.known_growth * float(np.log(turns))
    covered = float(told.share(told.here + told.before + told.after).max())
    found = question.reads * float(near.max()) + weights.known_words * covered
    return found >= wanted * question.reads


def _nearness(question: Question, pool: Pool) -> Floats:
    """How near each turn is: 0 (unrelated, farther, or without a vector) to 1."""
    near = 1 - (1 - pool.similarity.astype(np.float64)) / (question.unrelated or 1.0)
    return np.clip(np.nan_to_num(near, nan=0.0), 0.0, 1.0)


def _strength(question: Question, pool: Pool, told: _Told) -> float:
    """How near the nearest turn is by meaning, or how much of the question one tells, whichever is more: an
    identifier is found though the model has no idea of it.
    """
    nearest = question.reads * float(np.nan_to_num(pool.similarity, nan=0.0).max())
    return min(1.0, max(nearest, float(told.share(told.here).max())))


def _to_one(values: Floats) -> Floats:
    best = float(values.max(initial=0.0))
    return values / best if best > 0 else np.zeros_like(values)
