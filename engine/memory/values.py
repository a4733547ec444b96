"""What of the words after `my name is` is the name: the value of a fact, or that there is none.

Precision counts: a value that does not look like one is none, and `my name is important` tells no name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.memory import phrasing
from engine.memory.phrasing import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.memory.phrasing import Language

MOST_WORDS = 6
"""Words of a value."""

LONGEST_UNSPACED = 16
"""Characters of a value in a script without spaces."""

OLDEST = 125

_WORD = re.compile(r"\S+")
_BEGINS = re.compile(r"[^\W_]|['’]")
_AGE = re.compile(r"(\d{1,3})(?![\d%.:/])\s*")
_DATE = re.compile(r"[^\W_][\w./°-]*(?:\s+[\w./°-]+){0,4}(?:,\s*\d{4})?")
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\"]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PREPOSITION = re.compile(r"(?:de|del|da|do|dos|das|di|du|des|della|d['’].*)$", re.IGNORECASE)
_TRIMMED = "'`*_~ .!-\u2013\u2014\u2018\u2019"


def value(shape: Shape, raw: str, language: Language) -> str | None:
    """The value that `raw` begins with; None where what stands there is no value of that shape."""
    if shape is Shape.AGE:
        return _age(raw, language)
    if shape is Shape.DATE:
        return _date(raw)
    if shape is Shape.EMAIL:
        found = _EMAIL.match(raw)
        return found[0].rstrip(".") if found else None
    if not language.spaced:
        return _unspaced(shape, raw, language)
    words = _until_stop(raw, language)
    seen = words[:1] if shape in {Shape.PLACE, Shape.PROPER} else words
    if not words or any(_blocked(word, language) for word in seen):
        return None
    count = _COUNTS[shape](words, language)
    return _upto(raw, count) if count else None


def _until_stop(raw: str, language: Language) -> list[str]:
    words: list[str] = []
    for found in _WORD.finditer(raw):
        word = found[0]
        if len(words) > MOST_WORDS or _plain(word) in language.stops or not _BEGINS.match(word):
            break
        words.append(word)
    return words


def _upto(raw: str, count: int) -> str:
    ends = [found.end() for found in _WORD.finditer(raw)]
    return raw[: ends[count - 1]].rstrip(_TRIMMED)


def _name(words: Sequence[str], language: Language) -> int:
    """How many words are a name: those with capitals, or up to two without any that stand alone."""
    if language.caseless:
        return len(words) if len(words) <= 3 else 0
    count = _capitalised(words)
    if not count:
        return len(words) if len(words) <= 2 and not any(map(str.isdigit, words)) else 0
    return 0 if words[count - 1].endswith(("'s", "’s")) else count


def _proper(words: Sequence[str], language: Language) -> int:
    return _name(words, language) if language.caseless or _capitalised(words) else 0


def _capitalised(words: Sequence[str]) -> int:
    """How many words from the first on are written with a capital; particles may stand between."""
    count = 0
    for number, word in enumerate(words, 1):
        if word[0].isupper() or (count and word[0].isdigit()):
            count = number
        elif not count or _plain(word) not in phrasing.words("particles"):
            break
    return count


def _trade(words: Sequence[str], language: Language) -> int:
    known = language.professions
    if language.head_first:
        head = [_plain(word) for word in _before_preposition(words)]
        return len(words) if known.intersection(head[:2]) else 0
    return len(words) if _is_profession(_plain(words[-1]), language) else 0


def _role(words: Sequence[str], language: Language) -> int:
    trade = _trade(words, language)
    if trade or language.capitalised_nouns:
        return trade
    return _capitalised(words)


def _calling(words: Sequence[str], _language: Language) -> int:
    return len(words) if len(words) < MOST_WORDS else 0


_COUNTS = {
    Shape.NAME: _name,
    Shape.PROPER: _proper,
    Shape.PLACE: _name,
    Shape.TRADE: _trade,
    Shape.ROLE: _role,
    Shape.CALLING: _calling,
}


def _unspaced(shape: Shape, raw: str, language: Language) -> str | None:
    told = raw.strip(_TRIMMED + "\u300c\u300d")
    for stop in language.stops:
        told = told.partition(stop)[0]
    told = told.removesuffix("吗").removesuffix("吧").strip()
    if not told or len(told) > LONGEST_UNSPACED or any(word in told for word in language.blocked):
        return None
    if shape in {Shape.TRADE, Shape.ROLE} and not told.endswith(tuple(language.professions)):
        return None
    return told


def _age(raw: str, language: Language) -> str | None:
    found = _AGE.match(raw)
    if not found or not 0 < int(found[1]) <= OLDEST:
        return None
    rest = raw[found.end() :]
    if language.years.match(rest):
        return found[1]
    # `I am 34` is an age in English alone: `tengo 3` is an answer to much else
    return found[1] if language.code == "en" and not rest.strip(_TRIMMED) else None


def _date(raw: str) -> str | None:
    found = _DATE.match(raw)
    if not found or not any(map(str.isdigit, found[0])) or len(found[0]) < 3:
        return None
    words = found[0].split()
    last = max(at for at, word in enumerate(words) if any(map(str.isdigit, word)))
    count = last + 1 if last else 3  # `25 de diciembre` goes on after its number
    return _upto(raw, min(count, len(words)))


def _before_preposition(words: Sequence[str]) -> list[str]:
    head: list[str] = []
    for word in words:
        if _PREPOSITION.match(word):
            break
        head.append(word)
    return head


def _is_profession(word: str, language: Language) -> bool:
    known = language.professions
    if word in known or word.rpartition("-")[2] in known:
        return True
    return language.compounds and word.endswith(tuple(each for each in known if len(each) > 3))


def _blocked(word: str, language: Language) -> bool:
    plain = _plain(word)
    return plain in language.blocked or plain.partition("-")[0] in language.blocked  # ex-nurse


def _plain(word: str) -> str:
    return word.strip(_TRIMMED + '"?,').casefold()
