"""Cutting texts into spans a remote model can read, when only the model itself can count its tokens.

Pure functions on text and numbers. What a text costs in tokens is estimated from its characters, with
room to spare: English prose costs a quarter of a token a character and is counted as two fifths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.models.embedding.windows import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

PROSE, OTHER_ASCII, TWO_BYTES, THREE_BYTES, FOUR_BYTES = 0.4, 0.8, 1.0, 1.5, 3.0
"""Tokens a character: small letters and blanks, digits and signs, then by length in UTF-8, which is how
tokenizers split what they do not know."""

OVERLAP = 0.1
"""The share of a span that repeats the one before it, so that a sentence on the seam is read whole once."""

SHORTEST = 16
"""Characters below which a span is not cut again: a model that finds this too long has another fault."""

BLANK = "."
"""Read in place of a text without any visible character: some models make nothing of nothing."""

_COSTS = np.full(128, OTHER_ASCII)
_COSTS[[ord(character) for character in "abcdefghijklmnopqrstuvwxyz \n"]] = PROSE


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text number `text`. `weight` counts its characters that no span before it has."""

    text: int
    body: str
    weight: int
    cost: float


def readable(text: str) -> str:
    """The text with what no server takes replaced: lone surrogates (JSON in UTF-8 has none) and NUL."""
    clean = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return clean if clean.strip() else BLANK


def costs(text: str) -> NDArray[np.float64]:
    """Estimated tokens of each character of a readable text."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    steps = [codes < 0x80, codes < 0x800, codes < 0x10000]
    return np.select(steps, [_COSTS[codes % 128], TWO_BYTES, THREE_BYTES], FOUR_BYTES)


def cut(number: int, text: str, tokens: float) -> list[Span]:
    """The spans of a readable text, none estimated at more than `tokens`, unless it is one character."""
    ends = np.cumsum(costs(text))
    found: list[Span] = []
    start, read = 0, 0
    while read < len(text):
        before = float(ends[start - 1]) if start else 0.0
        stop = max(read + 1, int(np.searchsorted(ends, before + tokens, "right")))
        cost = float(ends[stop - 1]) - before
        found.append(Span(number, text[start:stop], stop - read, cost))
        read = stop
        start = min(read, max(start + 1, int(np.searchsorted(ends, ends[stop - 1] - tokens * OVERLAP))))
    return found


def halves(span: Span) -> list[Span]:
    """The two halves of a span that proved too long, sharing its weight; nothing when it is short."""
    middle = len(span.body) // 2
    if len(span.body) < SHORTEST:
        return []
    parts = (span.body[:middle], span.body[middle:])
    return [
        Span(span.text, readable(part), max(1, span.weight * len(part) // len(span.body)), span.cost / 2)
        for part in parts
    ]


def pooled(
    read: Iterable[tuple[Span, NDArray[np.float32]]], texts: int, dimension: int
) -> NDArray[np.float32]:
    """One vector of length 1 a text: the mean of its spans' vectors by their weight."""
    sums = np.zeros((texts, dimension), np.float32)
    for span, vector in read:
        sums[span.text] += vector * np.float32(span.weight)
    return normalised(sums)


def cut_all(texts: Sequence[str], tokens: float) -> list[Span]:
    """The spans of several texts, made readable, in order."""
    return [span for number, text in enumerate(texts) for span in cut(number, readable(text), tokens)]
