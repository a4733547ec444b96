"""Explicit corrections, recognised without a model: `No, it is Tuesday`, `that's wrong`, `I meant the other`.

A correction is learned from alone and outranks what was said before, so precision counts: `No problem` and
`No, thanks` are none, nor is a standing instruction (`from now on use tabs`), which corrects nothing.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from engine.memory import ownwords, phrasing

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

_QUESTION = "?\u061f\uff1f"


def is_correction(text: str) -> bool:
    """Whether the user says that something was said or done wrongly. What is quoted, pasted or asked does
    not count; of a very long turn only the beginning is read (`ownwords.MOST_READ`).
    """
    for number, (start, end) in enumerate(ownwords.sentences(text)):
        places = ownwords.beginnings(text, start, end)
        if number == 0 and _any(_first(), text, places, len(text)):
            return True
        if not _asked(text, end) and _any(_anywhere(), text, places, end):
            return True
    return False


def _asked(text: str, end: int) -> bool:
    return end < len(text) and text[end] in _QUESTION


def _any(patterns: Iterable[re.Pattern[str]], text: str, places: Iterable[int], end: int) -> bool:
    starts = tuple(places)
    return any(pattern.match(text, at, end) for pattern in patterns for at in starts)


def _first() -> Iterable[re.Pattern[str]]:
    rest = chain.from_iterable(language.corrects_first for language in phrasing.languages())
    return chain([phrasing.contradiction()], rest)


def _anywhere() -> Iterable[re.Pattern[str]]:
    return chain.from_iterable(language.corrects_anywhere for language in phrasing.languages())
