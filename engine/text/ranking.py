"""Ranking: exact BM25 over packed postings, and the fusion of a keyword list with a vector list.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with the inverse document frequency of Lucene, which is never negative. Pure numbers: no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Scores = NDArray[np.float32]

K1 = 0.9
"""How soon more of the same term stops to count."""

B = 0.5
"""How far a long passage is held to need more of a term."""

POSTING = np.dtype([("passage", "<i4"), ("length", "<u2"), ("tf", "<u1")])
"""One posting of a term, 7 bytes: the passage, its length in terms, how often the term stands in it."""

_SPREAD = 16
"""Above this many ids for each posting an array over all ids costs more than sorting the postings."""

_SMALL = 1 << 16
"""Ids that an array may always span."""


def pack(passages: Sequence[int], lengths: Sequence[int], frequencies: Sequence[int]) -> bytes:
    """Postings of one term as they are stored. Lengths and frequencies beyond a field are cut to it."""
    packed = np.empty(len(passages), POSTING)
    packed["passage"] = passages
    packed["length"] = np.minimum(lengths, np.iinfo("<u2").max)
    packed["tf"] = np.minimum(frequencies, np.iinfo("u1").max)
    return packed.tobytes()


@dataclass(frozen=True, slots=True)
class _Slots:
    """Maps passage ids to places in an array: by offset where the ids lie close, else by search."""

    first: int
    size: int
    known: Ids | None

    @classmethod
    def over(cls, postings: Sequence[NDArray[np.void]]) -> _Slots:
        count = sum(map(len, postings))
        if not count:
            return cls(0, 0, None)
        first = min(int(each["passage"].min()) for each in postings)
        span = max(int(each["passage"].max()) for each in postings) - first + 1
        if span <= max(_SMALL, _SPREAD * count):
            return cls(first, span, None)
        known = np.unique(np.concatenate([each["passage"] for each in postings]))
        return cls(0, len(known), known)

    def of(self, ids: NDArray[np.integer]) -> NDArray[np.int64]:
        """Places of ids that are all known."""
        if self.known is None:
            return ids.astype(np.int64) - self.first
        return np.searchsorted(self.known, ids)

    def within(self, ids: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which places belong to any of the ids."""
        if self.known is not None:
            return np.isin(self.known, ids)
        marked = np.zeros(self.size, np.bool_)
        places = ids.astype(np.int64) - self.first
        marked[places[(places >= 0) & (places < self.size)]] = True
        return marked

    def ids(self, places: NDArray[np.int64]) -> Ids:
        """The ids at places."""
        return (places + self.first).astype(np.int32) if self.known is None else self.known[places]


@dataclass(frozen=True, slots=True)
class Bm25:
    """The BM25 score of every passage that has any term of a query."""

    _slots: _Slots
    _scores: Scores

    @classmethod
    def of(
        cls,
        postings: Mapping[str, Sequence[bytes]],
        documents: int,
        total_length: int,
        *,
        exclude: NDArray[np.integer] | None = None,
    ) -> Bm25:
        """Score a query whose terms have these packed postings, a list of blocks each.

        `documents` and `total_length` (in terms)
        describe the whole collection without the passages of `exclude`, which count nowhere.
        """
        blocks = [np.frombuffer(b"".join(postings[term]), POSTING) for term in sorted(postings)]
        blocks = [block for block in blocks if len(block)]
        slots = _Slots.over(blocks)
        scores = np.zeros(slots.size, np.float32)
        hidden = slots.within(exclude) if exclude is not None and len(exclude) else None
        average = max(1.0, total_length / max(1, documents))
        for block in blocks:
            places = slots.of(block["passage"])
            having = len(places) - (int(hidden[places].sum()) if hidden is not None else 0)
            weight = _idf(documents, having) * (K1 + 1)
            np.add.at(scores, places, _gains(block, average) * np.float32(weight))
        if hidden is not None:
            scores[hidden] = 0
        return cls(slots, scores)

    def best(self, limit: int, *, only: NDArray[np.integer] | None = None) -> tuple[Ids, Scores]:
        """The best passages with their scores, best first and of equal ones the lowest id first.

        With `only` the best among these; their scores are still those of the whole collection.
        """
        scores = self._scores if only is None else self._scores * self._slots.within(only)
        places = np.flatnonzero(scores)
        if limit < len(places):
            found = scores[places]
            places = places[found >= np.partition(found, -limit)[-limit]] if limit > 0 else places[:0]
        order = np.lexsort((places, -scores[places]))[:limit]
        return self._slots.ids(places[order]), scores[places[order]]

    def at(self, ids: Sequence[int]) -> list[float]:
        """The scores of these passages: 0 of one that has no term of the query."""
        wanted = np.asarray(ids, np.int64)
        found = np.zeros(len(wanted), np.float32)
        known = self._slots.known
        if known is None:
            inside = (wanted >= self._slots.first) & (wanted < self._slots.first + self._slots.size)
        else:
            inside = np.isin(wanted, known)
        found[inside] = self._scores[self._slots.of(wanted[inside])]
        return [float(value) for value in found]


def _gains(block: NDArray[np.void], average: float) -> NDArray[np.float32]:
    """What each posting adds for a term of weight 1: 7 digits are enough, and half the memory to move."""
    gain = block["tf"].astype(np.float32)
    damping = block["length"].astype(np.float32)
    damping *= np.float32(K1 * B / average)
    damping += np.float32(K1 * (1 - B))
    damping += gain
    gain /= damping
    return gain


def _idf(documents: int, having: int) -> float:
    """How much a term tells: the rarer, the more (Lucene's form, above 0 for every term)."""
    return float(np.log1p((max(documents, having) - having + 0.5) / (having + 0.5)))


def score(
    postings: Mapping[str, Sequence[bytes]],
    documents: int,
    total_length: int,
    *,
    exclude: NDArray[np.integer] | None = None,
    only: NDArray[np.integer] | None = None,
    limit: int,
) -> tuple[Ids, Scores]:
    """The `limit` best passages and their scores: `Bm25.of` and `Bm25.best` in one call."""
    return Bm25.of(postings, documents, total_length, exclude=exclude).best(limit, only=only)


@dataclass(frozen=True, slots=True)
class Fused:
    """A passage with its fused score and where it stood in each list (1-based; None: not in it)."""

    id: int
    score: float
    keyword_rank: int | None
    keyword_score: float | None
    vector_rank: int | None
    distance: float | None


def fuse(
    keyword: Iterable[tuple[int, float]], vector: Iterable[tuple[int, float]], share: float
) -> list[Fused]:
    """One list of two, best first, of equal ones the lowest id first.

    `keyword` holds (id, BM25 score) and `vector` (id, cosine distance), each best first. Each list
    is brought to 0..1 by its best score, since scores fuse better than ranks, and by nothing else,
    so that what a list's tail holds changes nothing at its head. `share` (0..1) is the weight of the
    vector list, the keyword list has the rest.
    """
    keyword, vector = list(keyword), list(vector)
    words, ranks = dict(keyword), {identity: rank for rank, (identity, _) in enumerate(keyword, 1)}
    distances = dict(vector)
    nearness = {identity: rank for rank, (identity, _) in enumerate(vector, 1)}
    best_word = max(words.values(), default=0.0) or 1.0
    best_meaning = max((1 - distance for distance in distances.values()), default=0.0)
    fused: list[Fused] = []
    for identity in dict.fromkeys((*words, *distances)):
        distance = distances.get(identity)
        by_words = words.get(identity, 0.0) / best_word
        by_meaning = (
            max(0.0, 1 - distance) / best_meaning if distance is not None and best_meaning > 0 else 0.0
        )
        fused.append(
            Fused(
                identity,
                (1 - share) * by_words + share * by_meaning,
                ranks.get(identity),
                words.get(identity),
                nearness.get(identity),
                distance,
            )
        )
    return sorted(fused, key=lambda hit: (-hit.score, hit.id))
