"""Ranking of turns: words with those of the turns beside them, meaning with theirs, who said it, and where.

Pure numbers: no database, no model. What is ranked is a whole brain, as arrays. The parameters were tuned on
LoCoMo's conversations 1 to 5 and are the same for all; `tests/benchmarks/test_memory_recall.py` tells what
they give on 6 to 10 beside them. BM25F with the neighbouring turns as further fields: Robertson and Zaragoza,
"The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Floats = NDArray[np.float64]


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
    coverage: float = 0.4
    """How much of what the question tells (0..1, by rarity) makes a turn relevant whatever the model says."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `words` are its terms without those that only ask; `named` the hashes of speakers who
    are named in it. `reads` tells how far (0..1) the model reads it, `limit` the cosine distance beyond which
    the model holds texts for unrelated.
    """

    words: tuple[str, ...]
    named: frozenset[int] = frozenset()
    reads: float = 0.0
    limit: float = 0.0


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
    is to the question, the others' in proportion. `score` is that times confidence: turns are ranked by it.
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
    counts, rarity = _frequencies(question, pool)
    words = _words(pool, beside, counts, rarity, weights)
    relevance = _relevance(question, pool, beside, words, weights)
    relevant = _relevant(question, pool, beside, (counts, rarity), weights)
    scale = _strength(pool, counts, rarity) / (float(relevance[relevant].max(initial=0.0)) or 1.0)
    similarity = np.minimum(relevance * scale, 1.0)
    score = similarity * pool.confidence
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


def _frequencies(question: Question, pool: Pool) -> tuple[Floats, Floats]:
    """How often each word of the question stands in each turn, and how rare (idf, Lucene's form) each is."""
    size = len(pool.ids)
    counts = np.zeros((len(question.words), size))
    for row, word in enumerate(question.words):
        places, frequencies = pool.terms.get(word, (np.empty(0, np.intp), np.empty(0, np.int32)))
        counts[row, places] = frequencies
    having = (counts > 0).sum(axis=1)
    return counts, np.log1p((size - having + 0.5) / (having + 0.5))


def _words(pool: Pool, beside: _Beside, counts: Floats, rarity: Floats, weights: Parameters) -> Floats:
    """BM25F over the turns and those beside them, brought to 0..1."""
    mixed = counts + weights.words_before * beside.previous(counts)
    mixed += weights.words_after * beside.following(counts)
    longer = pool.lengths / max(1.0, float(pool.lengths.mean()))
    damping = weights.k1 * (1 - weights.b + weights.b * longer)
    return _to_one((rarity[:, None] * mixed / (mixed + damping)).sum(axis=0))


def _meaning(pool: Pool, beside: _Beside, weights: Parameters) -> Floats:
    """Nearness of the turns and of those beside them, from the farthest (0) to the nearest (1). A turn that
    has no vector is as near as the mean.
    """
    near = pool.similarity.astype(np.float64)
    near = np.where(np.isnan(near), np.nanmean(near), near)
    spread = _to_one(near - near.min())
    return _to_one(spread + weights.meaning_beside * (beside.previous(spread) + beside.following(spread)))


def _relevance(question: Question, pool: Pool, beside: _Beside, words: Floats, weights: Parameters) -> Floats:
    share = weights.meaning * question.reads if not np.isnan(pool.similarity).all() else 0.0
    if not words.any() and share:
        share = 1.0
    relevance = (1 - share) * words
    if share:
        relevance = relevance + share * _meaning(pool, beside, weights)
    if question.named:
        relevance = relevance + weights.speaker * np.isin(pool.speakers, list(question.named))
    relevance = relevance - weights.asks * pool.asks
    relevance = relevance + weights.length * np.log1p(pool.lengths / max(1.0, float(pool.lengths.mean())))
    _, session = np.unique(pool.channels, return_inverse=True)
    best = np.full(session.max() + 1, -np.inf)
    np.maximum.at(best, session, relevance)
    return np.maximum(relevance + weights.session * best[session], 0.0)


def _relevant(
    question: Question,
    pool: Pool,
    beside: _Beside,
    told: tuple[Floats, Floats],
    weights: Parameters,
) -> NDArray[np.bool_]:
    """Which turns are evidence: near enough in meaning or with enough of the question's words in them, or
    beside one that is. Of a question that the model hardly reads, any word will do.
    """
    counts, rarity = told
    near = np.nan_to_num(pool.similarity.astype(np.float64), nan=-1.0) >= 1 - question.limit
    if not question.reads:
        near[:] = False
    wanted = weights.coverage * question.reads
    covered = _coverage(counts, rarity)
    evidence = (near | ((covered >= wanted) & (covered > 0))).astype(np.float64)
    return (evidence + beside.previous(evidence) + beside.following(evidence)) > 0


def _coverage(counts: Floats, rarity: Floats) -> Floats:
    """The share of the question's words in each turn, weighted by how rare they are."""
    total = float(rarity.sum()) or 1.0
    covered: Floats = (rarity[:, None] * (counts > 0)).sum(axis=0) / total
    return covered


def _strength(pool: Pool, counts: Floats, rarity: Floats) -> float:
    """How near the nearest turn is: by meaning, or by words where nothing has a vector."""
    if np.isnan(pool.similarity).all():
        return float(_coverage(counts, rarity).max(initial=0.0))
    return max(0.0, min(1.0, float(np.nanmax(pool.similarity))))


def _to_one(values: Floats) -> Floats:
    best = float(values.max(initial=0.0))
    return values / best if best > 0 else np.zeros_like(values)
