"""How people speak of themselves and correct others, by language, as the files in `languages/` tell.

Each file has regular expressions and lists of words:

- `claims`: what stands before a fact (`head`), and after it where the value comes first (`tail`); `after` are
  facts that may follow another at once, as in `a nurse at St Mary's`.
- `stops` end a value, `blocked` are never in one, `years` follow an age, `professions` are what one can be.
- `greetings`, `refusals` and `openings` may stand before a statement; `announcing`, before a colon, says that
  what follows is the user's own, and `others` that it is not.
- `play` invites to play a part, `supposed` makes of a sentence a supposition, `taken_back` undoes what stands
  before it. `untold` are articles and titles, `particles` stand between the parts of a name.
- `turned` has what is said to the user, and how he would say it of himself.
- A turn that begins with a refusal corrects, unless `answers` follow it: `no, thanks`. So does one that
  begins with `corrects_first`, and one that has a sentence that begins with `corrects_anywhere`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from engine.text.words import is_unsegmented

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CODES = ("en", "de", "es", "fr", "pt", "it", "nl", "ru", "zh", "ja", "ar", "hi")
"""The languages that are read. The order decides nothing but which is tried first."""


class Shape(StrEnum):
    """What the value of a fact looks like."""

    NAME = "name"
    """A proper name, or a word or two that stand alone."""
    PROPER = "proper"
    """A proper name that is written with a capital."""
    PLACE = "place"
    """As a name; what follows it may be anything."""
    TRADE = "trade"
    """A known profession."""
    ROLE = "role"
    """A known profession, or what is written with a capital: Prime Minister."""
    CALLING = "calling"
    """A few words."""
    AGE = "age"
    DATE = "date"
    EMAIL = "email"


@dataclass(frozen=True, slots=True)
class Claim:
    """One way to tell the fact `key`, which is named the same in every language."""

    key: str
    shape: Shape
    head: re.Pattern[str]
    tail: re.Pattern[str] | None


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """What one file tells. Lists of words are case-folded."""

    code: str
    claims: tuple[Claim, ...]
    after: tuple[Claim, ...]
    stops: frozenset[str]
    blocked: frozenset[str]
    professions: frozenset[str]
    years: re.Pattern[str]
    corrects_first: tuple[re.Pattern[str], ...]
    corrects_anywhere: tuple[re.Pattern[str], ...]
    compounds: bool
    """The end of a word says what it is: Krankenschwester."""
    head_first: bool
    """The first word of a value says what it is: ingeniero de software."""
    capitalised_nouns: bool
    """A capital makes no proper name."""
    caseless: bool
    spaced: bool


@cache
def languages() -> tuple[Language, ...]:
    """All of them. Read when first needed."""
    return tuple(_language(code) for code in CODES)


@cache
def opening() -> re.Pattern[str]:
    """One thing that may stand before a statement without changing whose it is, with what parts them."""
    each = "|".join(filter(None, (_openings(_raw(code)) for code in CODES)))
    return re.compile(rf"(?:{each})[\s,\uff0c\u3001\u060c!:\u2013\u2014-]*", re.IGNORECASE)


@cache
def announcement() -> re.Pattern[str]:
    """What stands before a colon after which the user speaks of himself."""
    spaced = "|".join(_words(_raw(code)["announcing"]) for code in CODES if _raw(code).get("spaced", True))
    dense = "|".join(_words(_raw(code)["announcing"]) for code in CODES if not _raw(code).get("spaced", True))
    return re.compile(rf"(?:.{{0,60}}\b(?:{spaced})|.{{0,20}}(?:{dense}))\W{{0,4}}$", re.IGNORECASE)


@cache
def any_claim() -> re.Pattern[str]:
    """The head of any claim: what does not begin with one tells no fact, which is most sentences."""
    each = "|".join(
        claim.head.pattern for language in languages() for claim in (*language.claims, *language.after)
    )
    return re.compile(each, re.IGNORECASE)


@cache
def everywhere(key: str) -> re.Pattern[str]:
    """An expression of all languages at once: `others`, `play`, `supposed`, `taken_back`."""
    told = (_raw(code)[key] for code in CODES)
    parts = (part for each in told for part in ([each] if isinstance(each, str) else each))
    return re.compile("|".join(f"(?:{part})" for part in parts), re.IGNORECASE)


@cache
def words(key: str) -> frozenset[str]:
    """The words of a list of all languages at once: `untold`, `particles`."""
    return frozenset(word for code in CODES for word in _raw(code)[key].split())


@cache
def turned() -> Mapping[str, str]:
    """What is said to somebody, in small letters, as he would say it himself; and the other way round."""
    said = {theirs.lower(): own for code in CODES for theirs, own in _raw(code)["turned"].items()}
    return {own.lower(): theirs for theirs, own in said.items()} | said


@cache
def addressed() -> re.Pattern[str]:
    """Every key of `turned`, where it is a word for itself or of a script without spaces."""
    keys = sorted(turned(), key=len, reverse=True)
    spaced = "|".join(_words(key.replace(" ", "_")) for key in keys if not is_unsegmented(key[0]))
    dense = "|".join(map(re.escape, (key for key in keys if is_unsegmented(key[0]))))
    return re.compile(rf"(?<!\w)(?:{spaced})(?!\w)|{dense}", re.IGNORECASE)


@cache
def contradiction() -> re.Pattern[str]:
    """A no with which a turn corrects, rather than answers."""
    refusals = "|".join(_words(_raw(code)["refusals"]) for code in CODES)
    answers = "|".join(_raw(code)["answers"] for code in CODES)
    apart = r"\s*[,.!;\uff0c\u3002\uff01\u3001\u060c\u0964\u2013\u2014-]+\s*"
    return re.compile(rf"(?:{refusals}){apart}(?!{answers})(?=\w)", re.IGNORECASE)


@cache
def _raw(code: str) -> Mapping[str, Any]:
    return tomllib.loads(files("engine.memory").joinpath("languages", f"{code}.toml").read_text("utf-8"))


def _language(code: str) -> Language:
    raw = _raw(code)
    spaced = bool(raw.get("spaced", True))
    return Language(
        code=code,
        claims=tuple(_claim(each, raw, spaced=spaced) for each in raw["claims"]),
        after=tuple(_claim(each, raw, spaced=spaced) for each in raw.get("after", ())),
        stops=frozenset(raw["stops"].casefold().split()),
        blocked=frozenset(raw["blocked"].casefold().split()),
        professions=frozenset(raw["professions"].casefold().split()),
        years=re.compile(raw.get("years", r"(?!)"), re.IGNORECASE),
        corrects_first=_compiled(raw["corrects_first"], ""),
        corrects_anywhere=_compiled(raw["corrects_anywhere"], r"(?!\w)" if spaced else ""),
        compounds=bool(raw.get("compounds")),
        head_first=bool(raw.get("head_first")),
        capitalised_nouns=bool(raw.get("capitalised_nouns")),
        caseless=bool(raw.get("caseless")),
        spaced=spaced,
    )


def _claim(each: Mapping[str, str], raw: Mapping[str, Any], *, spaced: bool) -> Claim:
    head = each["head"]
    for name, meaning in raw.get("short", {}).items():
        head = head.replace(f"<{name}>", meaning)
    gap = r"(?:\s+|(?<=['\u2019])|\s*[:\uff1a]\s*)" if spaced else r"\s*"
    tail = re.compile(each["tail"]) if "tail" in each else None
    return Claim(each["key"], Shape(each["shape"]), re.compile(f"(?:{head}){gap}", re.IGNORECASE), tail)


def _compiled(expressions: Sequence[str], after: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(f"(?:{each}){after}", re.IGNORECASE) for each in expressions)


def _openings(raw: Mapping[str, Any]) -> str:
    """A refusal opens only where it stands apart: `no, me llamo` says what `no me llamo` denies."""
    end = r"(?![\w'\u2019])" if raw.get("spaced", True) else ""
    greeting = rf"(?:{_words(raw['greetings'])}){end}(?:\s+(?:there|[^\W\d_]+(?=\s*,)))?"
    refusal = rf"(?:{_words(raw['refusals'])})(?=\s*[,\uff0c\u3001\u060c\u2013\u2014-])"
    return rf"{greeting}|{refusal}|(?:{_words(raw['openings'])}){end}"


def _words(listed: str) -> str:
    """Words as alternatives, the longest first; `_` is a blank, and either apostrophe will do."""
    words = sorted(listed.split(), key=len, reverse=True)
    escaped = (re.escape(word).replace("_", " ").replace("'", "['\u2019]") for word in words)
    return "|".join(escaped)
