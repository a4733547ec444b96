"""Ranking that all parts share: exact BM25 over packed postings, and the fusion of scored lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

POSTING = np.dtype([("passage", "<i4"), ("length", "<u2"), ("tf", "u1")])
"""One posting as it is stored, 7 bytes: passage id, its length in terms, the term's frequency in it."""

K1, B = 1.2, 0.75

_DENSE_SPAN = 8_000_000
"""Ids between the smallest and the largest up to which scores are gathered in one array."""


def score(
    postings: Mapping[str, Sequence[bytes]],
    documents: int,
    total_length: int,
    *,
    exclude: NDArray[np.int32] | None,
    only: NDArray[np.int32] | None,
    limit: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best passages by BM25: ids and scores, best first, the smaller id first where scores tie.

    The formula is Robertson and Zaragoza's ("The Probabilistic Relevance Framework", 2009) with the idf
    of Lucene, ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.
    """
    average = total_length / documents if documents > 0 and total_length > 0 else 1.0
    ids: list[NDArray[np.int32]] = []
    parts: list[NDArray[np.float32]] = []
    for packed in postings.values():
        rows = np.frombuffer(b"".join(packed), dtype=POSTING)
        passages = rows["passage"]
        if exclude is not None and len(exclude):
            live = ~np.isin(passages, exclude)
            rows, passages = rows[live], passages[live]
        idf = np.log1p((max(documents, len(rows)) - len(rows) + 0.5) / (len(rows) + 0.5))
        if only is not None:
            inside = np.isin(passages, only)
            rows, passages = rows[inside], passages[inside]
        tf = rows["tf"].astype(np.float32)
        norm = K1 * (1 - B + B * rows["length"].astype(np.float32) / np.float32(average))
        ids.append(passages)
        parts.append((np.float32(idf) * tf * (K1 + 1) / (tf + norm)).astype(np.float32))
    found, scores = _added(ids, parts)
    order = np.lexsort((found, -scores))[:limit]
    return found[order], scores[order]


def _added(
    ids: Sequence[NDArray[np.int32]], parts: Sequence[NDArray[np.float32]]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    if not any(len(each) for each in ids):
        return np.empty(0, np.int32), np.empty(0, np.float32)
    every = np.concatenate(ids)
    low, high = int(every.min()), int(every.max())
    if high - low < _DENSE_SPAN:
        total = np.bincount(every - low, weights=np.concatenate(parts))
        found = np.flatnonzero(total)
        return (found + low).astype(np.int32), total[found].astype(np.float32)
    found, inverse = np.unique(every, return_inverse=True)
    return found, np.bincount(inverse, weights=np.concatenate(parts)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Fused:
    """A hit of the fused list, with where it stood in each: 1-based ranks, None where absent."""

    id: int
    score: float
    keyword_rank: int | None
    keyword_score: float | None
    vector_rank: int | None
    distance: float | None


def fuse(
    keyword: Sequence[tuple[int, float]], vector: Sequence[tuple[int, float]], weight: float
) -> list[Fused]:
    """Fuse a scored list and a list of distances by min-max normalised scores.

    `weight` (0 to 1) is the vector list's share. Scores fuse better than ranks (`hazards.md`).
    """
    words = dict(_normalised([(identity, value) for identity, value in keyword]))
    meaning = dict(_normalised([(identity, -distance) for identity, distance in vector]))
    ranks = {identity: (rank, value) for rank, (identity, value) in enumerate(keyword, 1)}
    places = {identity: (rank, value) for rank, (identity, value) in enumerate(vector, 1)}
    fused = [
        Fused(
            identity,
            (1 - weight) * words.get(identity, 0.0) + weight * meaning.get(identity, 0.0),
            *ranks.get(identity, (None, None)),
            *places.get(identity, (None, None)),
        )
        for identity in {**words, **meaning}
    ]
    return sorted(fused, key=lambda hit: (-hit.score, hit.id))


def _normalised(hits: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    if not hits:
        return []
    values = [value for _, value in hits]
    low, high = min(values), max(values)
    span = high - low
    return [(identity, (value - low) / span if span > 0 else 1.0) for identity, value in hits]
