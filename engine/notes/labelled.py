"""Labelled questions: what is asked to measure search, read strictly from a file.

The format is knowman's: a JSON list of objects with `id`, `question`, `expect` ("citation" or "negative") and
`expect_path_contains`. Two fields more are ours: `expect_lines` ("path:L3-L9") and `k`. A field that nobody
knows is refused: a misspelt one would make its question easier than it was meant, and nobody would notice.
"""

from __future__ import annotations

import difflib
import json
import re
import reprlib
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from engine.errors import DatasetError
from engine.notes.model import MOST_CITATIONS
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

MOST_BYTES = 32 * 1024 * 1024
"""The largest file that is read: a hundred thousand questions. A device would have no end."""

FIELDS = ("id", "question", "expect", "expect_path_contains", "expect_lines", "k")

SHOWN = 40
"""Characters of what is wrong in a message."""

_LINES = re.compile(r"(.+):L(\d{1,9})-L(\d{1,9})", re.ASCII | re.DOTALL)

_EXAMPLE = (
    'Such as {"id": "owls", "question": "when do owls hunt", "expect": "citation", '
    '"expect_path_contains": "owls.md"}.'
)


class Expect(StrEnum):
    """What answers a question: a citation of the right place, or nothing at all."""

    CITATION = "citation"
    NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class Lines:
    """A place in a note: its path in the folder, and the 1-based inclusive range."""

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what answers it. `k` is how many citations may be needed; None: the usual number."""

    id: str
    text: str
    expect: Expect
    path_contains: str = ""
    lines: Lines | None = None
    k: int | None = None

    @property
    def expected(self) -> str:
        """What answers, in words: "nothing", or where the answer stands."""
        if not self.place_wanted:
            return "nothing"
        if self.lines is not None:
            return f"{self.lines.path}:L{self.lines.first}-L{self.lines.last}"
        return f"a path with {self.path_contains!r}"

    @property
    def place_wanted(self) -> bool:
        """Whether a place answers, and not that there is none."""
        return self.expect is Expect.CITATION

    def wants(self, path: str, first: int, last: int) -> bool:
        """Whether a citation of these lines (1-based, inclusive) answers: any overlap counts.

        Paths are compared in Unicode's normal form C, as macOS writes a name otherwise than it is typed.
        """
        if not self.place_wanted:
            return False
        path = normalize("NFC", path)
        if normalize("NFC", self.path_contains) not in path:
            return False
        lines = self.lines
        return lines is None or (
            path == normalize("NFC", lines.path) and first <= lines.last and last >= lines.first
        )


def absent(questions: Sequence[Question], paths: Sequence[str]) -> tuple[str, ...]:
    """The ids of the questions that no search can answer, since no note of these paths is the one wanted."""
    known = [normalize("NFC", path) for path in paths]
    names, all_of_them = frozenset(known), "\n".join(known)
    return tuple(
        each.id
        for each in questions
        if each.place_wanted
        and (
            normalize("NFC", each.path_contains) not in all_of_them
            or (each.lines is not None and normalize("NFC", each.lines.path) not in names)
        )
    )


def read(path: Path) -> tuple[Question, ...]:
    """The questions of a file, in its order; at least one.

    Raises:
        DatasetError: it cannot be read, or something in it is not as the format has it.
    """
    return parse(data(path), str(path))


def data(path: Path) -> bytes:
    """What stands in a file, as far as a dataset may be long.

    Raises:
        DatasetError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DatasetError(f"{path} cannot be read: {reason}.", remedy="Check the path.") from error


def parse(data: bytes, name: str) -> tuple[Question, ...]:
    """The questions that a file of this name holds.

    Raises:
        DatasetError: as for `read`; it names the file and the row, counted from 1.
    """
    rows = _loaded(data, name)
    if not isinstance(rows, list) or not rows:
        raise DatasetError(
            f"{name} is not a list of questions.", remedy="Write a JSON list of objects. " + _EXAMPLE
        )
    questions: dict[str, Question] = {}
    for number, row in enumerate(rows, 1):
        question = _Row(row, f"{name}, row {number}").question()
        if question.id in questions:
            before = list(questions).index(question.id) + 1
            raise DatasetError(
                f"{name}, row {number}: its id {_shown(question.id)} is that of row {before}.",
                remedy="Give each question an id of its own.",
            )
        questions[question.id] = question
    return tuple(questions.values())


def _loaded(data: bytes, name: str) -> object:
    if len(data) > MOST_BYTES:
        size = MOST_BYTES // 1024**2
        raise DatasetError(f"{name} is larger than {size} MB.", remedy="Ask fewer questions at a time.")
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_Pairs, parse_constant=_Pairs.refuse)
    except UnicodeDecodeError as error:
        raise DatasetError(
            f"{name} is not UTF-8: byte {error.start + 1} fits no character.", remedy="Save it as UTF-8."
        ) from error
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{name} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            remedy="Write a JSON list of objects. " + _EXAMPLE,
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a nest without end
        raise DatasetError(
            f"{name} is not JSON that can be read.", remedy="Write a JSON list of objects. " + _EXAMPLE
        ) from error


class _Pairs(list[tuple[str, Any]]):
    """The fields of an object as they stand: one that stands twice is not lost."""

    @staticmethod
    def refuse(constant: str) -> None:
        """Infinity and NaN are no JSON.

        Raises:
            ValueError: always.
        """
        raise ValueError(constant)


class _Row:
    """One row on its way to a question; `place` is the file and the row's number."""

    def __init__(self, row: object, place: str) -> None:
        self._place = place
        if not isinstance(row, _Pairs):
            raise DatasetError(f"{place} is not an object.", remedy=_EXAMPLE)
        self._fields: Mapping[str, Any] = self._checked(row)

    def question(self) -> Question:
        """The question of the row.

        Raises:
            DatasetError: a field is missing, or is not what it must be.
        """
        identity = self._text("id", "Give each question an id of its own.")
        self._place += f" ({_shown(identity)})"
        text = self._text("question", "Write what is asked.")
        expect, path, lines = self._expect(), self._path(), self._lines()
        if expect is Expect.NEGATIVE and (path or lines):
            raise self._wrong(
                "it expects nothing, and names a place all the same",
                'Expect "citation", or take the place away.',
            )
        if expect is Expect.CITATION and not (path or lines):
            raise self._wrong(
                "it does not say where the answer stands", "Give expect_path_contains or expect_lines."
            )
        return Question(identity, text, expect, path, lines, self._k())

    def _checked(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if name not in FIELDS:
                near = difflib.get_close_matches(name[:SHOWN], FIELDS, n=1)
                meant = f"Did you mean {near[0]}?" if near else f"It may have: {', '.join(FIELDS)}."
                raise self._wrong(f"{_shown(name)} is not a field of a question", meant)
            if name in fields:
                raise self._wrong(f"{name} stands twice", "Take one of them away.")
            fields[name] = value
        return fields

    def _text(self, name: str, remedy: str) -> str:
        value = self._fields.get(name)
        if value is None:
            raise self._wrong(f"it has no {name}", remedy)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(f"{name} is {_shown(value)}, which is not a text", remedy)
        return self._whole(name, value)

    def _whole(self, name: str, value: str) -> str:
        if spelt(value) != value:
            raise self._wrong(f"{name} holds half of a surrogate pair", "Write the whole character.")
        return value

    def _expect(self) -> Expect:
        value = self._fields.get("expect")
        if value not in tuple(Expect):
            said = "it has no expect" if value is None else f"expect is {_shown(value)}"
            raise self._wrong(said, f"Expect {' or '.join(map(repr, map(str, Expect)))}.")
        return Expect(value)

    def _path(self) -> str:
        if self._fields.get("expect_path_contains") is None:
            return ""
        return self._text("expect_path_contains", "Give a part of the path, or null.")

    def _lines(self) -> Lines | None:
        value = self._fields.get("expect_lines")
        if value is None:
            return None
        found = _LINES.fullmatch(self._whole("expect_lines", value)) if isinstance(value, str) else None
        first, last = (int(found[2]), int(found[3])) if found else (0, 0)
        if found is None or not 1 <= first <= last:
            raise self._wrong(f"expect_lines is {_shown(value)}", "Write it as 'notes/owls.md:L3-L9'.")
        return Lines(found[1], first, last)

    def _k(self) -> int | None:
        value = self._fields.get("k")
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST_CITATIONS:
            raise self._wrong(f"k is {_shown(value)}", f"Give a whole number from 1 to {MOST_CITATIONS}.")
        return value

    def _wrong(self, what: str, remedy: str) -> DatasetError:
        return DatasetError(f"{self._place}: {what}.", remedy=remedy)


def _shown(value: object) -> str:
    if isinstance(value, _Pairs):
        return "an object"
    text = repr(value) if isinstance(value, str) else reprlib.repr(value)  # which nests are no match for
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
