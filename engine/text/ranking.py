"""Ranking: exact BM25 over packed postings, and the fusion of a keyword list with a vector list.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with the inverse document frequency of Lucene, which is never negative. Pure numbers: no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    Ids = NDArray[np.int32]
    Scores = NDArray[np.float32]

K1 = 0.9
"""How soon more of the same term stops to count."""

B = 0.4
"""How far a long passage is held to need more of a term. K1 and B are the values that Anserini ships for
prose; on chunking_evaluation the covered share is the same within 0.5 % from 0.7/0.4 to 1.2/0.5."""

NEIGHBOUR_WORDS = 0.2
"""What a word in the passage before or after counts, where it counts 1 in the passage itself. On
chunking_evaluation keywords alone cover 0.86 of the answers with 0, 0.90 with 0.15 to 0.25."""

NEIGHBOUR_NEARNESS = 0.25
"""The same for nearness in meaning, as shares of a mean: hybrid 0.906 with 0, 0.92 with 0.15 to 0.25."""

POOL = 100
"""Passages each list gives to the fusion: 50 and 200 cover the same on chunking_evaluation."""

EVIDENCE = 0.4
"""A passage that is too far away in meaning is evidence still when this much of what the query tells
stands in it: an identifier is found though the model has no idea of it. knowman's questions without an
answer reach .22; from 0.3 to 0.5 XQuAD's recall differs by 0.6 %."""

_FIELDS = {"passage": "i", "length": "H", "tf": "B"}
"""One posting of a term, 7 bytes: the passage, its length in terms, how often the term stands in it."""

POSTING = np.dtype([(name, f"<{code}") for name, code in _FIELDS.items()])
_LONGEST, _MOST = np.iinfo(POSTING["length"]).max, np.iinfo(POSTING["tf"]).max

_SPREAD = 16
"""Above this many ids for each posting an array over all ids costs more than sorting the postings."""

_SMALL = 1 << 16
"""Ids that an array may always span."""


def postings(
    passages: NDArray[np.integer] | int, lengths: NDArray[np.integer], frequencies: NDArray[np.integer]
) -> NDArray[np.void]:
    """Postings as they are stored. A length or frequency beyond its field is cut to it."""
    made = np.empty(len(lengths), dtype=POSTING)
    made["passage"] = passages
    made["length"] = np.minimum(lengths, _LONGEST)
    made["tf"] = np.minimum(frequencies, _MOST)
    return made


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

    def find(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of any ids; of an unknown one the place behind the last."""
        if self.known is None:
            places = ids - self.first
            return np.where((places >= 0) & (places < self.size), places, self.size)
        places = np.searchsorted(self.known, ids)
        inside = np.append(self.known, -1)[places] == ids
        return np.where(inside, places, self.size)

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
class _Term:
    """A term of a query: its weight, and in which places it stands how often."""

    weight: float
    places: NDArray[np.int64]
    frequencies: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Bm25:
    """The BM25 score of every passage that has any term of a query."""

    documents: int
    average: float
    _slots: _Slots
    _terms: Mapping[str, _Term]
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

        `documents` and `total_length` (in terms) describe the whole collection without the passages
        of `exclude`, which count nowhere.
        """
        blocks = {term: np.frombuffer(b"".join(postings[term]), POSTING) for term in sorted(postings)}
        slots = _Slots.over([block for block in blocks.values() if len(block)])
        scores = np.zeros(slots.size, np.float32)
        hidden = slots.within(exclude) if exclude is not None and len(exclude) else None
        average = max(1.0, total_length / max(1, documents))
        terms: dict[str, _Term] = {}
        for name, block in blocks.items():
            places = slots.of(block["passage"])
            having = len(places) - (int(hidden[places].sum()) if hidden is not None else 0)
            term = _Term(_idf(documents, having), places, block["tf"])
            np.add.at(scores, places, _gains(block, average) * np.float32(term.weight * (K1 + 1)))
            terms[name] = term
        if hidden is not None:
            scores[hidden] = 0
        return cls(documents, average, slots, terms, scores)

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

    def in_context(
        self, lengths: Mapping[int, int], neighbours: Mapping[int, Sequence[int]]
    ) -> dict[int, float]:
        """The scores of passages when the words of their neighbours count a little too.

        `lengths` names the passages with their lengths in terms, `neighbours` what stands before and
        after each. It is BM25F with the neighbours as a second field: frequencies are added, by
        `NEIGHBOUR_WORDS`, before they are damped. A neighbour that is missing, at the ends of a file, counts
        as the passage itself, so that a note of one passage is not at a disadvantage.
        """
        ids = list(lengths)
        around = _pairs(ids, neighbours)
        damping = np.array([lengths[each] for each in ids]) * (K1 * B / self.average) + K1 * (1 - B)
        scores = np.zeros(len(ids))
        for term in self._terms.values():
            frequency = self._frequencies(term, around).astype(np.float64)
            mixed = frequency[0] + NEIGHBOUR_WORDS * (frequency[1] + frequency[2])
            scores += term.weight * (K1 + 1) * mixed / (mixed + damping)
        return dict(zip(ids, scores.tolist(), strict=True))

    def coverage(self, ids: Sequence[int], words: Sequence[Sequence[str]]) -> dict[int, float]:
        """How much of what a query tells stands in each passage: 0 (nothing) to 1 (every word).

        `words` are the query's words, each with the terms that may stand for it (more than one for an
        unfinished word). Words weigh by how rare they are; one that no passage has weighs the most.
        """
        wanted = np.asarray(ids, np.int64)
        total, found = 0.0, np.zeros(len(wanted))
        for alternatives in words:
            known = [self._terms[term] for term in alternatives if term in self._terms]
            weight = min((term.weight for term in known), default=_idf(self.documents, 0))
            total += weight
            if known:
                found += weight * np.any([self._frequencies(term, wanted) > 0 for term in known], axis=0)
        return dict(zip(wanted.tolist(), (found / (total or 1.0)).tolist(), strict=True))

    def _frequencies(self, term: _Term, ids: NDArray[np.int64]) -> NDArray[np.uint8]:
        """How often the term stands in each of the passages, whatever the shape of `ids`."""
        table = np.zeros(self._slots.size + 1, np.uint8)
        table[term.places] = term.frequencies
        return table[self._slots.find(ids)]


def _pairs(ids: Sequence[int], neighbours: Mapping[int, Sequence[int]]) -> NDArray[np.int64]:
    """Three rows: the passages, and what stands on either side of each."""
    rows = [(each, *(*neighbours.get(each, ()), each, each)[:2]) for each in ids]
    return np.array(rows, np.int64).reshape(-1, 3).T


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


@dataclass(frozen=True, slots=True)
class Fused:
    """A passage with its fused score and where it stood in each list (1-based; None: not in it).

    `distance` is None as long as the passage has no vector.
    """

    id: int
    score: float
    keyword_rank: int | None
    keyword_score: float | None
    vector_rank: int | None
    distance: float | None


def fuse(
    keyword: Sequence[tuple[int, float]],
    vector: Sequence[tuple[int, float]],
    share: float,
    *,
    words: Mapping[int, float] | None = None,
    distances: Mapping[int, float] | None = None,
    neighbours: Mapping[int, Sequence[int]] | None = None,
    unrelated: float = 1.0,
) -> list[Fused]:
    """One list of two, best first, of equal ones the lowest id first.

    `keyword` holds (id, BM25 score) and `vector` (id, cosine distance), each best first; what stands
    in either is ranked. `words` and `distances` are better known values of the same passages:
    `Bm25.in_context`, and the distance of every passage and neighbour that has a vector.
    `neighbours` are the passages before and after each. `unrelated` is the cosine distance of texts that have
    nothing to do with each other: nearness is counted down to it.

    Each list is brought to 0..1 by its best value, since scores fuse better than ranks, and by
    nothing else, so that what a list's tail holds changes nothing at its head. `share` (0..1) is the
    weight of meaning, words have the rest. A passage without a vector is judged by its words alone.
    """
    ranks = {each: rank for rank, (each, _) in enumerate(keyword, 1)}
    nearness = {each: rank for rank, (each, _) in enumerate(vector, 1)}
    listed = dict(keyword)
    known = {**dict(vector), **(distances or {})}
    candidates = list(dict.fromkeys((*ranks, *nearness)))
    by_words = _to_one({each: (words or listed).get(each, 0.0) for each in candidates})
    by_meaning = _nearness(candidates, known, neighbours or {}, unrelated)
    fused = [
        Fused(
            each,
            (1 - share) * by_words[each] + share * by_meaning.get(each, by_words[each]),
            ranks.get(each),
            listed.get(each),
            nearness.get(each),
            known.get(each),
        )
        for each in candidates
    ]
    return sorted((hit for hit in fused if hit.score > 0), key=lambda hit: (-hit.score, hit.id))


def _nearness(
    candidates: Sequence[int],
    distances: Mapping[int, float],
    neighbours: Mapping[int, Sequence[int]],
    unrelated: float,
) -> dict[int, float]:
    """How near each candidate that has a vector is, its neighbours counting by `NEIGHBOUR_NEARNESS`.

    A neighbour that is missing or has no vector counts as the passage itself.
    """
    known = {each: max(0.0, 1 - distance / unrelated) for each, distance in distances.items()}
    best = max((known[each] for each in candidates if each in known), default=0.0) or 1.0
    mixed: dict[int, float] = {}
    for each in candidates:
        if (value := known.get(each)) is None:
            continue
        around = [known[side] for side in neighbours.get(each, ()) if side in known]
        sides = (*around, value, value)[:2]
        mixed[each] = (value + NEIGHBOUR_NEARNESS * sum(sides)) / (1 + 2 * NEIGHBOUR_NEARNESS) / best
    return mixed


def _to_one(values: Mapping[int, float]) -> dict[int, float]:
    best = max(values.values(), default=0.0) or 1.0
    return {each: value / best for each, value in values.items()}


def evidence(
    hits: Sequence[Fused],
    limit: float,
    coverage: Mapping[int, float],
    reads: float = 1.0,
    near: AbstractSet[int] = frozenset(),
) -> list[Fused]:
    """The hits that may be cited: near enough, or with enough of the query's words in them.

    `limit` is the greatest cosine distance, and `near` are hits that lie beyond it and are near enough all
    the same, `coverage` is `Bm25.coverage` of the hits, and `reads`
    (0..1) how far the model reads the query: of a language it does not read, distances mean nothing
    and every hit by words stays. A passage without a vector is not held against it.
    """
    return [
        hit
        for hit in hits
        if hit.distance is None
        or hit.distance <= limit
        or hit.id in near
        or (hit.keyword_rank is not None and coverage.get(hit.id, 0.0) >= EVIDENCE * reads)
    ]
