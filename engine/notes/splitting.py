"""Cuts what is too long for one chunk: a block at its line ends, a single line inside itself.

A cut is chosen near the size that divides the rest evenly, so that no crumb is left over, and where a
reader would cut: between paragraphs, items and code blocks rather than inside them, after a sentence
rather than inside one. Everything looks at a bounded window only, so the time is linear.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BETWEEN_BLOCKS = 0.6
_BETWEEN_ITEMS = 0.5
_INSIDE_BLOCK = 0.3
_INSIDE_ITEM = 0.2
_AFTER_SENTENCE = 0.2
"""What a good place is worth: the share of the target size that a cut may lie off for its sake.

Between paragraphs; between items or rows; at a blank line inside code or inside an item; before a nested
item; after a line that ends a sentence.
"""

_LOOK_AHEAD = 3
"""Lines looked at for what follows a cut; more blank lines than this separate anything."""

_NARROWEST = 0.5
_WIDEST = 1.4
"""A piece of a line is between these shares of the size aimed at, if any boundary lies there."""

_ITEM = re.compile(r"[ \t]*(?:(?:[-+*]|\d{1,9}[.)]|\|)(?:[ \t]|$)|<(?:tr|li)\b)")
_SENTENCE_END = (".", "!", "?", "…", ":", ".)", '."', ".”", "。", "！", "？", "।", "؟")  # noqa: RUF001

_BOUNDARIES = (
    re.compile(
        r"(?:(?<=[.!?…।؟])|(?<=[.!?…][\"'”’»)\]]))\s+"
        r"|(?<=[。！？｡])(?![」』”’）。！？])|(?<=[。！？｡][」』”’）])"  # noqa: RUF001
    ),
    re.compile(r"(?<=[,;:])\s+|(?<=[，；、：،])"),  # noqa: RUF001
    re.compile(r"\s+"),
)
"""Where a line may be cut, best first: after a sentence, after a clause, between words."""

_HARD_CUT_RETREAT = 32
"""How far a cut in a line without any boundary moves back to keep a character with its marks."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Lines `start` to `end` (0-based, end exclusive); `text` only where it is not all of these lines."""

    start: int
    end: int
    text: str | None = None


@dataclass(slots=True)
class Measured:
    """The lines of a text with what is needed to size and cut any range of them in constant time."""

    lines: Sequence[str]
    fences: Mapping[int, int]
    _before: list[int] = field(init=False)
    _inside: set[int] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._before = [0, *accumulate(map(len, self.lines))]

    def size(self, start: int, end: int) -> int:
        """Characters of the lines joined by newlines."""
        return self._before[end] - self._before[start] + end - start - 1

    def text(self, start: int, end: int) -> str:
        """The lines joined by newlines."""
        return "\n".join(self.lines[start:end])

    def in_fence(self, at: int) -> bool:
        """Whether a cut before line `at` would fall inside a fenced block."""
        if self._inside is None:
            self._inside = set()
            for opening, closing in self.fences.items():
                self._inside.update(range(opening + 1, closing + 1))
        return at in self._inside


def split_lines_range(  # the one entry: a range of lines in pieces
    source: Measured, start: int, end: int, *, head: int, target: int, limit: int
) -> list[Piece]:
    """Lines `start` to `end` in pieces of at most `limit` characters, near `target` each.

    Lines before `head` are headings: no cut falls among them or between them and what follows.
    """
    pieces: list[Piece] = []
    while head < end and not source.lines[head].strip():
        head += 1
    while True:
        while start < end and not source.lines[start].strip():
            start += 1
        if start >= end:
            return pieces
        rest = source.size(start, end)
        if rest <= limit:
            pieces.append(Piece(start, _without_blank_tail(source, start, end), None))
            return pieces
        aim = rest / math.ceil(rest / target)
        cut, fits = _best_cut(source, start, end, head=head, aim=aim, limit=limit)
        if fits:
            pieces.append(Piece(start, _without_blank_tail(source, start, cut)))
        else:
            pieces += _split_with_long_line(source, start, cut, target=target, limit=limit)
        start = cut


def _without_blank_tail(source: Measured, start: int, end: int) -> int:
    while end > start + 1 and not source.lines[end - 1].strip():
        end -= 1
    return end


def _best_cut(
    source: Measured, start: int, end: int, *, head: int, aim: float, limit: int
) -> tuple[int, bool]:
    """The line before which to cut, and whether what stands before it fits into one piece.

    It does not fit when even the first line, with the headings above it, is over-long.
    """
    best, least = 0, math.inf
    first = max(start, head) + 1
    for at in range(first, end + 1):
        size = source.size(start, at)
        if size > limit:
            last = len(source.lines[at - 1])
            if at > first and last > limit and size - last < aim / 2:
                return at, False  # a few short lines above an over-long one go with its first piece
            break
        cost = abs(size - aim) / aim - _worth(source, at)
        if cost < least:
            best, least = at, cost
    return (best, True) if best else (first, False)


def _worth(source: Measured, at: int) -> float:
    """How good a place it is to cut before line `at`."""
    lines = source.lines
    below = next((line for line in lines[at : at + _LOOK_AHEAD] if line.strip()), None)
    if below is None:
        return _BETWEEN_BLOCKS
    blank = not lines[at].strip() or not lines[at - 1].strip()
    if source.in_fence(at):
        return _INSIDE_BLOCK if blank else 0.0
    if below[0].isspace():
        return (
            _INSIDE_BLOCK if blank else _INSIDE_ITEM if _ITEM.match(below) else _sentence_ends(lines[at - 1])
        )
    if blank or at in source.fences:
        return _BETWEEN_BLOCKS
    return _BETWEEN_ITEMS if _ITEM.match(below) else _sentence_ends(lines[at - 1])


def _sentence_ends(line: str) -> float:
    return _AFTER_SENTENCE if line.rstrip().endswith(_SENTENCE_END) else 0.0


def _split_with_long_line(source: Measured, start: int, cut: int, *, target: int, limit: int) -> list[Piece]:
    """Lines `start` to `cut`, of which the last is over-long: its pieces, the first with the lines above."""
    last = cut - 1
    above = source.text(start, last) + "\n" if last > start else ""
    texts = split_line(source.lines[last], target=target, limit=limit, taken=len(above))
    if above and (not texts or len(above) + len(texts[0]) > limit):  # no texts: the line is white space
        return [
            Piece(start, _without_blank_tail(source, start, last)),
            *(Piece(last, cut, text) for text in texts),
        ]
    return [Piece(start, cut, above + texts[0]), *(Piece(last, cut, text) for text in texts[1:])]


def split_line(line: str, *, target: int, limit: int, taken: int = 0) -> list[str]:
    """An over-long line in pieces of at most `limit` characters, without the white space at the cuts.

    `taken` characters of the first piece are already used by what stands above it.
    """
    pieces: list[str] = []
    at, end = 0, len(line.rstrip())
    while at < end:
        rest = taken + end - at
        aim = max(rest / math.ceil(rest / target) - taken, target / 4)
        if rest <= limit or end - at <= aim:
            pieces.append(line[at:end])
            break
        cut = _cut_in_line(line, at, aim=aim, limit=limit)
        pieces.append(line[at:cut].rstrip())
        at, taken = _skip_space(line, cut), 0
    return pieces


_SPACE = re.compile(r"\s*")


def _skip_space(line: str, at: int) -> int:
    match = _SPACE.match(line, at)
    return at if match is None else match.end()


def _cut_in_line(line: str, at: int, *, aim: float, limit: int) -> int:
    goal = at + int(aim)
    low, high = at + max(1, int(aim * _NARROWEST)), at + min(limit, int(aim * _WIDEST))
    for boundary in _BOUNDARIES:
        cuts = [match.start() for match in boundary.finditer(line, low, high)]
        if cuts:
            return min(cuts, key=lambda cut: abs(cut - goal))
    for cut in range(goal, max(at, goal - _HARD_CUT_RETREAT), -1):
        if not _belongs_to_previous(line, cut):
            return cut
    return goal


def stands_at_cuts(piece: str, line: str, *, first: bool) -> bool:
    """Whether a piece (the line's `first`, or any) stands in it with its ends where a line may be cut."""
    end = len(line.rstrip())
    last = 0 if first else end - len(piece)
    at = line.find(piece)
    while 0 <= at <= last:
        after = at + len(piece)
        if (at == 0 or _is_after_cut(line, at)) and (after >= end or _is_cut(line, after)):
            return True
        at = line.find(piece, at + 1)
    return False


def _is_cut(line: str, at: int) -> bool:
    return any(boundary.match(line, at) for boundary in _BOUNDARIES)


def _is_after_cut(line: str, at: int) -> bool:
    cut = at
    while cut and line[cut - 1].isspace():
        cut -= 1
    return any((match := boundary.match(line, cut)) and match.end() == at for boundary in _BOUNDARIES)


def _belongs_to_previous(line: str, at: int) -> bool:
    """Whether the character at `at` is drawn together with the one before it."""
    character, previous = line[at], line[at - 1]
    return (
        unicodedata.category(character) in {"Mn", "Mc", "Me", "Cf", "Cs"}
        or previous == "\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
    )
