"""Cutting token lists into the windows a model can read, and putting their vectors together again.

Pure functions on numbers: no model, no threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

SPECIALS = 2
"""Tokens the model wants around each window: one before, one after."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens of one text that the model reads at once, without the special ones around them.

    `weight` counts the tokens that no earlier window of the text has, so that what two windows
    share is not counted twice; an empty text weighs 1.
    """

    text: int
    ids: Sequence[int]
    weight: int


def windows(text: int, ids: Sequence[int], size: int, overlap: int) -> Iterator[Window]:
    """The windows of text number `text`: at most `size` tokens, each but the first beginning with
    the last `overlap` tokens of the one before, so that a sentence on the seam is read whole once.
    """
    yield Window(text, ids[:size], max(1, min(size, len(ids))))
    for end in range(size, len(ids), size - overlap):
        start, stop = end - overlap, min(end - overlap + size, len(ids))
        yield Window(text, ids[start:stop], stop - end)


def batches(pieces: Sequence[Window], tokens: int) -> list[list[Window]]:
    """Group windows of like length so that no group holds more than `tokens`, padding included.

    A window that is longer than that alone stands alone. Sorting by length keeps padding small.
    """
    groups: list[list[Window]] = []
    for piece in sorted(pieces, key=lambda window: len(window.ids)):
        width = len(piece.ids) + SPECIALS
        if groups and (len(groups[-1]) + 1) * width <= tokens:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups


def padded(batch: Sequence[Window], first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token ids with the special tokens `first` and `last` around them, and their attention mask."""
    width = max(len(window.ids) for window in batch) + SPECIALS
    ids = np.zeros((len(batch), width), np.int64)
    mask = np.zeros_like(ids)
    for row, window in enumerate(batch):
        length = len(window.ids) + SPECIALS
        ids[row, :length] = [first, *window.ids, last]
        mask[row, :length] = 1
    return ids, mask


def mean_pooled(states: NDArray[np.float32], mask: NDArray[np.int64]) -> NDArray[np.float32]:
    """The mean of the token states that the mask shows, at length 1: the recipe the model was
    trained with (its card: mean pooling, then normalisation).
    """
    shown = mask[:, :, None].astype(np.float32)
    return normalised((states * shown).sum(axis=1) / shown.sum(axis=1))


def normalised(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row at length 1; a row of zeros stays one."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-12), np.float32)


def pooled(
    pieces: Sequence[Window], parts: Sequence[NDArray[np.float32]], texts: int, dimension: int
) -> NDArray[np.float32]:
    """One vector a text: the mean of its windows' vectors by their weight, at length 1.

    `parts` are the vectors of `pieces`, in the same order.
    """
    sums = np.zeros((texts, dimension), np.float32)
    for window, vector in zip(pieces, (row for part in parts for row in part), strict=True):
        sums[window.text] += vector * np.float32(window.weight)
    return normalised(sums)
