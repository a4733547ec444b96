"""Facts that people tell of themselves: my name, profession, employer, home or age is so and so.

Deterministic and without a model: this is what shows that a turn contradicts what is known. Precision comes
before recall: other people's facts, questions, denials, suppositions, quotations, code and parts that are
played tell nothing. `My job is Prime Minister, right?` is a claim.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.memory import ownwords, phrasing
from engine.memory.model import Contradiction
from engine.memory.values import value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from engine.memory.phrasing import Claim, Language


@dataclass(frozen=True, slots=True)
class Attribute:
    """A fact the user told of himself. `key` is the same in every language; it stands at start..end."""

    key: str
    value: str
    start: int
    end: int


_RAW = re.compile(
    "[\"'\u201c\u201e\u00ab\u2018\u300c\u300e]?"
    '([^,;:()\\[\\]{}<>|"\n\u201c\u201d\u201e\u00ab\u00bb\u2026\u060c\uff0c\u3001\u300d\u300e\u300f]{1,120})'
)
"""What the value begins, without a quotation mark before it."""

_JOINT = re.compile(
    "[\"'\u201d\u00bb\u2019]?(?:\\s*[,;\uff0c\u3001\u060c\u2013\u2014-]+\\s*|\\s+(?=\\w))"
    "(?:(?:and|und|y|et|e|en|и|和|और|و)\\s+)?",
    re.IGNORECASE,
)
"""What joins one statement to the next."""


def attributes(text: str) -> tuple[Attribute, ...]:
    """The facts a turn tells of its user, in the order in which they stand. Only its beginning is read where
    it is very long (`ownwords.MOST_READ`).
    """
    found: list[Attribute] = []
    for start, end in ownwords.sentences(text):
        if not phrasing.everywhere("supposed").search(text, start, end):
            found.extend(_statements(text, start, end))
    return tuple(found)


def conflict(known: Mapping[str, str], text: str) -> Contradiction | None:
    """The first fact in a turn that differs from what is known, by keys like those of `attributes`.

    A name or place told more fully, and an age that rose by a year, differ in nothing.
    """
    for each in attributes(text):
        held = known.get(each.key)
        if held is not None and not _agree(each.key, held, each.value):
            return Contradiction(each.key, held, each.value)
    return None


def to_first_person(text: str) -> str:
    """An answer as the user would say it of himself: `your name is Bob` as `my name is Bob`, and what the
    answer says of itself as said of another. For `conflict`, which reads what a user says.
    """
    return phrasing.addressed().sub(_turned, text[: ownwords.MOST_READ])


def same_value(one: str, other: str) -> bool:
    """Whether two values are the same but for case, accents, spaces, punctuation, articles and titles."""
    return _folded(one) == _folded(other)


def _turned(found: re.Match[str]) -> str:
    return phrasing.turned()[found[0].lower().replace("\u2019", "'")]


def _statements(text: str, start: int, end: int) -> Iterator[Attribute]:
    """The statements of a sentence, as long as each follows the one before it."""
    places = ownwords.beginnings(text, start, end)
    after: tuple[tuple[Language, Claim], ...] = ()
    while True:
        told = next(filter(None, (_first(text, at, end, after) for at in places)), None)
        if told is None or _taken_back(text, told[1].end, end):
            return
        yield told[1]
        joint = _JOINT.match(text, told[1].end, end)
        if joint is None:
            return
        places = [joint.end()]
        after = tuple((told[0], claim) for claim in told[0].after)


def _taken_back(text: str, at: int, end: int) -> bool:
    bare = re.compile(r"[\W_]+").match(text, at, end)
    return bool(bare and phrasing.everywhere("taken_back").match(text, bare.end(), end))


def _first(
    text: str, at: int, end: int, after: Iterable[tuple[Language, Claim]]
) -> tuple[Language, Attribute] | None:
    if not phrasing.any_claim().match(text, at, end):
        return None
    for language, claim in (*after, *_every_claim()):
        told = _told(text, at, end, language, claim)
        if told is not None:
            return language, told
    return None


def _every_claim() -> Iterator[tuple[Language, Claim]]:
    return ((language, claim) for language in phrasing.languages() for claim in language.claims)


def _told(text: str, at: int, end: int, language: Language, claim: Claim) -> Attribute | None:
    head = claim.head.match(text, at, end)
    found = _RAW.match(text, head.end(), end) if head else None
    if found is None:
        return None
    raw = found[1]
    if claim.tail is not None:
        tail = claim.tail.search(raw)
        if tail is None:
            return None
        raw = raw[: tail.start()]
    held = value(claim.shape, raw, language)
    if not held:
        return None
    start = found.start(1) + raw.index(held)
    return Attribute(claim.key, held, start, start + len(held))


_ACCENTS = re.compile("[\u0300-\u036f]")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|er|º|ª)$")


def _folded(text: str) -> tuple[str, ...]:
    bare = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text.casefold())))
    spaced = "".join(" " if unicodedata.category(each)[0] in "PSZC" else each for each in bare)
    words = tuple(_ORDINAL.sub(r"\1", word) for word in spaced.split())
    return tuple(word for word in words if word not in phrasing.words("untold")) or words


_MAY_BE_FULLER = frozenset({"name", "home", "origin", "birthplace", "employer", "pronouns", "language"})


def _agree(key: str, known: str, claimed: str) -> bool:
    one, other = _folded(known), _folded(claimed)
    if one == other:
        return True
    if key == "age":
        return known.isdecimal() and claimed.isdecimal() and int(claimed) - int(known) == 1
    if key == "birthday":
        return _may_be_same_day(one, other)
    return key in _MAY_BE_FULLER and _one_within(one, other)


def _one_within(one: Iterable[str], other: Iterable[str]) -> bool:
    first, second = set(one), set(other)
    return first <= second or second <= first


def _may_be_same_day(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two dates may be one: a month by name and one by number are not compared."""
    in_numbers = [all(map(str.isdecimal, date)) for date in (one, other)]
    return in_numbers[0] != in_numbers[1] or _one_within(one, other)
