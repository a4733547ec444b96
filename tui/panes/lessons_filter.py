"""What is typed into the filter of Lessons: words, and what else is asked of a lesson.

`core:work`, `user:alice` (`user:""` is the core's own brain), `age:>30d`, `unused`, `new`, `expired`,
`deleted`, `all`, `L12`. A word in quotes is only a word. What cannot be read is told and asks for nothing, so
that the rows stay while it is being typed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.memory.model import LessonFilter, LessonState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.memory.model import Cluster

_PART = re.compile(
    r"(?P<open>(?:core|user|age):)(?=\s|$)"
    r'|(?:(?P<key>core|user|age):)?(?:"(?P<quoted>[^"]*)"?|(?P<word>\S+))'
)
_AGE = re.compile(r">?=?(?P<number>[0-9]{1,5})(?P<unit>[hdw]?)")
_REFERENCE = re.compile(r"[Ll](?P<id>[0-9]{1,9})")
_DAYS = {"h": 1 / 24, "d": 1.0, "": 1.0, "w": 7.0}

STATES = {"expired": LessonState.EXPIRED, "deleted": LessonState.DELETED, "all": None}

AGE_WANTED = "age: takes a number of days, as age:>30d"


@dataclass(frozen=True, slots=True)
class Question:
    """What the filter asks for, and the sentence on what of it could not be read."""

    where: LessonFilter
    trouble: str = ""


def parse(text: str, state: LessonState | None = LessonState.LIVING) -> Question:
    """Read a filter. `state` is what is shown where it names none."""
    where, words, trouble = LessonFilter(state=state), [], ""
    for part in _PART.finditer(text):
        if part["open"] is not None:
            continue  # its value is still to be typed
        key, word = part["key"], part["quoted"] if part["word"] is None else part["word"]
        if key == "age":
            days = _days(word)
            where = where if days is None else replace(where, older_than_days=days)
            trouble = trouble if days is not None else AGE_WANTED
        elif key is not None:
            where = replace(where, core=word) if key == "core" else replace(where, user=word)
        elif part["word"] is None:
            words.append(word)
        else:
            where = _narrowed(where, word, words)
    return Question(replace(where, text=" ".join(words)), trouble)


def _narrowed(where: LessonFilter, word: str, words: list[str]) -> LessonFilter:
    """With what a bare word asks for; one that asks for nothing else is added to the words."""
    reference = _REFERENCE.fullmatch(word)
    if reference is not None:
        return replace(where, id=int(reference["id"]))
    if word == "unused":
        return replace(where, unused=True)
    if word == "new":
        return replace(where, new=True)
    if word in STATES:
        return replace(where, state=STATES[word])
    words.append(word)
    return where


def _days(text: str) -> float | None:
    found = _AGE.fullmatch(text)
    return int(found["number"]) * _DAYS[found["unit"]] if found else None


def clusters_of(clusters: Sequence[Cluster], where: LessonFilter) -> list[Cluster]:
    """The clusters that a filter lets through: by core, end user, and words in why they wait."""
    wanted = where.text.casefold().split()
    return [
        each
        for each in clusters
        if where.core in (None, each.core)
        and where.user in (None, each.user)
        and all(word in f"c{each.id} {each.core} {each.user} {each.error}".casefold() for word in wanted)
    ]


def references(text: str) -> tuple[list[int], str]:
    """`L12 L15 why`: the lessons that are named, and what follows them."""
    ids: list[int] = []
    rest = text.strip()
    while found := re.match(r"[Ll]?(?P<id>[0-9]{1,9})(?:[\s,]+|$)", rest):
        ids.append(int(found["id"]))
        rest = rest[found.end() :]
    return list(dict.fromkeys(ids)), rest
