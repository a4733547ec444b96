"""The marks of an answer: `[1]`, `[1, 2]`, `[1-3]`, `【1】`, each resolved to the citation it points to.

Only marks in prose count: what stands in code, or is the text of a link, points to nothing of ours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.notes.answered import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LONGEST_RANGE = 50
"""Numbers that `[1-9]` stands for at most; of a longer one only its ends are taken."""

MOST_NAMED = 5
"""Marks that point to nothing which are named; of the others only how many there are."""

_NUMBER = r"\^?\d{1,4}"
_DASH = "[-\u2010-\u2015~]"
_ITEM = rf"{_NUMBER}(?:\s*{_DASH}\s*{_NUMBER})?"
_LIST = rf"{_ITEM}(?:\s*[,;\u3001\uff0c]\s*{_ITEM})*"
_MARK = re.compile(
    rf"(?P<square>\[\s*{_LIST}\s*\])(?!\]?\()"  # not the text of a link
    rf"|(?P<wide>[\u3010\uff3b]\s*{_LIST}\s*(?:\u2020[^\u3011\n]{{0,200}})?[\u3011\uff3d])"
)
_ITEMS = re.compile(rf"\^?(\d{{1,4}})(?:\s*{_DASH}\s*\^?(\d{{1,4}}))?")

_FENCE = re.compile(r"^[ ]{0,3}(?:[-*+] +|\d+[.)] +)*(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")


def places(text: str) -> list[tuple[int, int, tuple[int, ...]]]:
    """Where marks stand in a text, each with the numbers it names, in order."""
    found = []
    for start, end in _prose(text):
        for mark in _MARK.finditer(text, start, end):
            inner = mark[0].partition("\u2020")[0]
            numbers = [number for item in _ITEMS.finditer(inner) for number in _numbers(item)]
            found.append((mark.start(), mark.end(), tuple(dict.fromkeys(numbers))))
    return found


def resolved(text: str, references: Sequence[str]) -> tuple[Mark, ...]:
    """The marks of an answer. The first of `references` is what `[1]` points to; a mark beyond them has none.

    One place that names several numbers gives a mark for each.
    """
    return tuple(
        Mark(start, end, number, references[number - 1] if 1 <= number <= len(references) else None)
        for start, end, numbers in places(text)
        for number in numbers
    )


def unsupported(marks: Sequence[Mark], given: int) -> tuple[str, ...]:
    """Sentences on what points to no source: marks beyond the passages `given`, or no mark at all."""
    if not marks:
        return ("The answer names no source.",)
    lost = [f"[{number}]" for number in dict.fromkeys(each.number for each in marks if not each.reference)]
    if not lost:
        return ()
    names = ", ".join(lost[:MOST_NAMED]) + (
        f" and {len(lost) - MOST_NAMED} more" if lost[MOST_NAMED:] else ""
    )
    point = "points" if len(lost) == 1 else "point"
    there = "the only passage is [1]" if given == 1 else f"the passages are [1] to [{given}]"
    return (f"{names} {point} to nothing: {there}.",)


def _numbers(item: re.Match[str]) -> Iterator[int]:
    first, last = int(item[1]), int(item[2] or item[1])
    if first <= last < first + LONGEST_RANGE:
        yield from range(first, last + 1)
    else:
        yield from (first, last)


def _prose(text: str) -> Iterator[tuple[int, int]]:
    """The stretches of a text that are not code."""
    at = 0
    for start, end in _code(text):
        if at < start:
            yield at, start
        at = end
    if at < len(text):
        yield at, len(text)


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Fenced blocks and code spans, in order; a fence that is not closed holds the rest."""
    at = 0
    while True:
        opening = _opening(text, at)
        yield from _spans(text, at, opening.start() if opening else len(text))
        if opening is None:
            return
        at = _closing(text, opening)
        yield opening.start(), at


def _opening(text: str, at: int) -> re.Match[str] | None:
    for found in _FENCE.finditer(text, at):
        if found["fence"][0] == "~" or "`" not in found["info"]:
            return found
    return None


def _closing(text: str, opening: re.Match[str]) -> int:
    """Where the block of a fence ends."""
    kind, length = opening["fence"][0], len(opening["fence"])
    for found in _FENCE.finditer(text, opening.end()):
        closes = found["fence"][0] == kind and len(found["fence"]) >= length
        if closes and not found["info"].strip():
            return found.end()
    return len(text)


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Code spans: from a run of backticks to the next that is as long, within one paragraph."""
    at = start
    while (opening := _TICKS.search(text, at, end)) is not None:
        at = opening.end()
        border = _PARAGRAPH_END.search(text, at, end)
        limit = border.start() if border else end
        for closing in _TICKS.finditer(text, at, limit):
            if len(closing[0]) == len(opening[0]):
                yield opening.start(), closing.end()
                at = closing.end()
                break
