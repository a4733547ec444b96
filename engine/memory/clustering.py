"""Greedy online clustering of packets by meaning: each joins the nearest cluster that is near enough, in the
order in which they came, or else begins one of its own.

Pure: vectors in, groups out. It is meant to run in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.models.embedding.base import Vectors

THRESHOLD = 0.55
"""Nearness to a cluster's centroid from which a packet joins it. With the bundled model, turns that ask for
five things in other words fall into their groups at .55 but for one pair; at .60 two pairs fall apart, and at
.50 a fifth of a long chat (LoCoMo) is one cluster."""

BLOCK = 256
"""Packets compared with all centroids in one product. The product is the cost, and it leaves the interpreter
to others; between two of them a step takes microseconds."""


@dataclass(frozen=True, slots=True)
class Group:
    """Packets that are about the same, by their places in what was given. `cohesion` is their mean nearness
    to the centroid (-1..1).
    """

    members: tuple[int, ...]
    cohesion: float


class _Centroids:
    """Running means of clusters, each of length 1, in one matrix that grows."""

    def __init__(self, dimension: int) -> None:
        self.count = 0
        self._sums = np.zeros((BLOCK, dimension), np.float32)
        self._units = np.zeros((BLOCK, dimension), np.float32)

    @property
    def units(self) -> Vectors:
        """One row a cluster."""
        return self._units[: self.count]

    def begin(self, vector: Vectors) -> int:
        """A new cluster of one; its place."""
        if self.count == len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
            self._units = np.concatenate([self._units, np.zeros_like(self._units)])
        place = self.count
        self._sums[place] = self._units[place] = vector
        self.count += 1
        return place

    def join(self, place: int, vector: Vectors) -> None:
        """One more in a cluster."""
        total = self._sums[place]
        total += vector
        self._units[place] = total / max(float(np.linalg.norm(total)), 1e-9)


def cluster(vectors: Vectors, threshold: float = THRESHOLD) -> list[Group]:
    """Groups of the rows of `vectors` (of length 1 each), in the order in which they began; most are of one.

    The outcome is that of going row by row.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    centroids = _Centroids(vectors.shape[1])
    places = np.zeros(len(vectors), np.int32)
    for start in range(0, len(vectors), BLOCK):
        block = vectors[start : start + BLOCK]
        places[start : start + BLOCK] = _assigned(block, centroids, threshold)
    return _groups(vectors, places, centroids.units)


def _assigned(block: Vectors, centroids: _Centroids, threshold: float) -> NDArray[np.int32]:
    """The cluster of each row of a block. What the block's own rows change is compared anew, and no more."""
    known = centroids.count
    near = np.full((len(block), known + len(block)), -2.0, np.float32)
    near[:, :known] = block @ centroids.units.T
    places = np.zeros(len(block), np.int32)
    for row, vector in enumerate(block):
        place = int(near[row, : centroids.count].argmax()) if centroids.count else 0
        if centroids.count and near[row, place] >= threshold:
            centroids.join(place, vector)
        else:
            place = centroids.begin(vector)
        near[row + 1 :, place] = block[row + 1 :] @ centroids.units[place]
        places[row] = place
    return places


def _groups(vectors: Vectors, places: NDArray[np.int32], units: Vectors) -> list[Group]:
    """The rows of each cluster, and how near they are to where its centroid came to lie."""
    nearness = np.einsum("ij,ij->i", vectors, units[places])
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    return [
        Group(tuple(members.tolist()), float(nearness[members].mean()))
        for members in np.split(order, starts[1:])
        if len(members)
    ]
