"""Greedy online clustering: the outcome is that of going turn by turn, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory import clustering
from engine.memory.clustering import cluster


def vectors(count: int, seed: int, *, centres: int = 8, noise: float = 0.6) -> np.ndarray:
    random = np.random.default_rng(seed)
    points = random.normal(size=(centres, 16))[random.integers(centres, size=count)]
    points = points + noise * random.normal(size=(count, 16))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def one_by_one(rows: np.ndarray, threshold: float) -> list[list[int]]:
    """The same without any art."""
    sums: list[np.ndarray] = []
    members: list[list[int]] = []
    for number, row in enumerate(rows):
        near = [float(row @ total / np.linalg.norm(total)) for total in sums]
        best = int(np.argmax(near)) if near else -1
        if near and near[best] >= threshold:
            sums[best] = sums[best] + row
            members[best].append(number)
        else:
            sums.append(row.copy())
            members.append([number])
    return members


@given(st.integers(0, 90), st.integers(0, 2**16), st.sampled_from([0.0, 0.5, 0.8, 1.01]))
def test_blocks_change_nothing(count: int, seed: int, threshold: float) -> None:
    rows = vectors(count, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clustering, "BLOCK", 7)
        found = [list(group.members) for group in cluster(rows, threshold)]
    assert found == one_by_one(rows, threshold)


def test_cohesion_is_the_mean_nearness_to_the_centroid() -> None:
    same, apart = cluster(np.array([[1, 0], [1, 0], [0, 1]], np.float32), 0.9)
    assert (same.members, same.cohesion) == ((0, 1), pytest.approx(1))
    assert (apart.members, apart.cohesion) == ((2,), pytest.approx(1))
    (wide,) = cluster(np.array([[1, 0], [0.6, 0.8]], np.float32), 0.5)
    assert wide.cohesion == pytest.approx(np.cos(np.arccos(0.6) / 2), abs=1e-5)


def test_vectors_of_nothing_are_no_error() -> None:
    assert cluster(np.zeros((0, 4), np.float32)) == []
    assert [group.members for group in cluster(np.zeros((2, 4), np.float32))] == [(0,), (1,)]
