"""Recalled text is recognised when it comes back as a turn: what was recalled is never learned from again.

An agent that records its whole prompt, or an answer that repeats what memory told it, would otherwise make
the memory its own witness.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from engine.text.characters import UNSEGMENTED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ECHO = 0.8
"""The share of recalled words from which on a text is an echo."""

RUN = 6
"""Words in a row that are the same in both: fewer are common phrases."""

SHORTEST = 20
"""Words of an echo: `Your name is Alice` is an answer, and a rule that a user repeats is his own word."""

CHARACTERS_A_WORD = 2
"""Of scripts without spaces, where each character is looked at for itself."""

FENCE = re.compile(r"</?(?:memory|passage) [0-9a-f]{16}>")
"""The mark of `engine.memory.messages` and `engine.notes.fencing` around what was recalled for a prompt."""


def is_echo(text: str, recalled: Sequence[str]) -> bool:
    """Whether a turn is recalled text: by our own marks in it, or by its words. Linear in both."""
    if FENCE.search(text):
        return True
    words = _words(text)
    return len(words) >= SHORTEST * _unit(words) and _share(words, recalled) >= ECHO


def share_recalled(text: str, recalled: Sequence[str]) -> float:
    """The share (0 to 1) of words that stand in runs of at least `RUN` that a recalled text has too."""
    return _share(_words(text), recalled)


def _share(words: Sequence[str], recalled: Sequence[str]) -> float:
    if not words or not recalled:
        return 0.0
    run = RUN * _unit(words)
    known = {shingle for each in recalled for shingle in _shingles(_words(each), run)}
    covered, reached = 0, 0
    for at, shingle in enumerate(_shingles(words, run)):
        if shingle in known:
            covered += at + run - max(at, reached)
            reached = at + run
    return covered / len(words)


def _shingles(words: Sequence[str], run: int) -> Iterator[tuple[str, ...]]:
    return zip(*(islice(words, start, None) for start in range(run)), strict=False)


def _unit(words: Sequence[str]) -> int:
    """How many of these make a word: characters count for less where most are of a script without spaces."""
    dense = sum(1 for word in islice(words, 200) if _character().match(word))
    return CHARACTERS_A_WORD if 2 * dense > min(len(words), 200) else 1


def _words(text: str) -> list[str]:
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    return _word().findall(folded)


@cache
def _word() -> re.Pattern[str]:
    return re.compile(rf"[{UNSEGMENTED}]|[^\W_{UNSEGMENTED}]+")


@cache
def _character() -> re.Pattern[str]:
    return re.compile(rf"[{UNSEGMENTED}]")
