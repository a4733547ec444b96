"""Cutting texts into windows where a tokenizer counts tokens but does not say where they stand.

Pure functions on text and numbers: no model, no threads. A text is taken apart into atoms, short runs of
characters that give the text again when joined; each is counted, and windows are filled with whole atoms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.models.embedding.windows import Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ATOM = 16
"""Letters after which a word is cut: few words are longer, and scripts without blanks have no words."""

_ATOM = re.compile(rf"\s*\S{{1,{ATOM}}}|\s+")


@dataclass(frozen=True, slots=True)
class Piece(Window):
    """A window as the text it holds. Of its `ids` only the number means something: its tokens."""

    body: str


def whole(number: int, text: str, tokens: int) -> Piece:
    """Text number `number` as a single window."""
    return Piece(number, range(tokens), max(1, tokens), text)


def atoms(text: str) -> list[str]:
    """The text in atoms: a word each with the blanks before it, or a part of a long one."""
    return _ATOM.findall(text)


def packed(
    number: int, parts: Sequence[str], tokens: Sequence[int], size: int, overlap: int
) -> Iterator[Piece]:
    """Windows of at most `size` tokens over the atoms of text number `number`, `tokens` being their costs.

    Each but the first begins with about the last `overlap` tokens of the one before, so that a sentence
    on the seam is read whole once. An atom that costs more than `size` is a window of its own.
    """
    start = seen = 0
    while seen < len(parts) or not seen:
        stop, cost = start, 0
        while stop < len(parts) and (stop <= seen or cost + tokens[stop] <= size):
            cost += tokens[stop]
            stop += 1
        fresh = sum(tokens[seen:stop])
        yield Piece(number, range(cost), max(1, fresh), "".join(parts[start:stop]))
        if stop >= len(parts):
            return
        start = _step_back(tokens, stop, min(overlap, size - tokens[stop]))
        seen = stop


def _step_back(tokens: Sequence[int], stop: int, most: int) -> int:
    """Where the atoms begin that end before `stop` and cost at most `most` together."""
    start = stop
    while start and tokens[start - 1] <= most:
        start -= 1
        most -= tokens[start]
    return start


def grouped(pieces: Sequence[Piece], tokens: int, texts: int) -> list[list[Piece]]:
    """The pieces in groups of at most `texts` that hold at most `tokens`, padded to the longest.

    One that is longer than that alone stands alone. Sorting by length keeps padding small.
    """
    groups: list[list[Piece]] = []
    for piece in sorted(pieces, key=lambda each: len(each.ids)):
        if groups and len(groups[-1]) < texts and (len(groups[-1]) + 1) * len(piece.ids) <= tokens:
            groups[-1].append(piece)
        else:
            groups.append([piece])
    return groups
