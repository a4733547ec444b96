"""Long texts are read whole: windows cover every token, batches stay small, pooling is exact."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.models.embedding.windows import SPECIALS, Window, batches, mean_pooled, padded, pooled, windows


@given(st.integers(0, 300), st.integers(5, 60), st.integers(0, 4))
def test_windows_hold_every_token_in_order_and_none_is_too_long(length: int, size: int, overlap: int) -> None:
    ids = list(range(length))
    found = list(windows(7, ids, size, overlap))
    fresh = [token for window in found for token in window.ids[len(window.ids) - window.weight :]]
    assert fresh == ids if length else found == [Window(7, [], 1)]
    assert all(window.text == 7 and len(window.ids) <= size for window in found)
    for before, after in itertools.pairwise(found):
        assert list(after.ids[:overlap]) == list(before.ids[len(before.ids) - overlap :])


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(20, 200))
def test_batches_hold_each_window_once_within_the_bound(lengths: list[int], tokens: int) -> None:
    pieces = [Window(number, [1] * length, length) for number, length in enumerate(lengths)]
    groups = batches(pieces, tokens)
    assert sorted(window.text for group in groups for window in group) == list(range(len(lengths)))
    for group in groups:
        size = len(group) * (max(len(window.ids) for window in group) + SPECIALS)
        assert size <= tokens or len(group) == 1


def test_padding_does_not_count_in_the_mean() -> None:
    ids, mask = padded([Window(0, [5], 1), Window(1, [5, 6, 7], 3)], first=101, last=102)
    assert ids.tolist() == [[101, 5, 102, 0, 0], [101, 5, 6, 7, 102]]
    assert mask.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    states = np.zeros((2, 5, 2), np.float32)
    states[0, :3] = [3, 4]
    states[0, 3:] = [1000, -1000]
    states[1, :, 0] = 2
    assert np.allclose(mean_pooled(states, mask), [[0.6, 0.8], [1, 0]])


def test_windows_are_pooled_by_what_each_adds_and_stay_at_length_one() -> None:
    east, north = np.array([[1, 0]], np.float32), np.array([[0, 1]], np.float32)
    pieces = [Window(1, [], 3), Window(0, [], 1), Window(1, [], 4)]
    vectors = pooled(pieces, [east, np.vstack([east, north])], texts=3, dimension=2)
    assert np.allclose(vectors, [[1, 0], [0.6, 0.8], [0, 0]])
