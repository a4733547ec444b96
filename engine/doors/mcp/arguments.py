"""What the tools take: one list, from which both the schema that clients see and the reading are made.

Clients do not always keep to a schema, and models never: each value is read, and refused in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from engine.errors import QueryError
from engine.notes.model import Mode
from engine.settings.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.notes.answered import SearchOptions

LONGEST_TEXT = 8_000
"""Characters of a question, a pattern, a heading or a folder."""

MOST = 50
"""Passages one call gives at most: a model has to read them all."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of a tool's parameters. `option` is its name in the engine."""

    option: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[str, Any], Any]


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_TEXT:
        raise QueryError(f"{name!r} has to be a text of 1 to {LONGEST_TEXT:,} characters.")
    return value


def _folder(name: str, value: object) -> Path:
    return expanded(Path(_text(name, value))).absolute()


def _number(name: str, value: object) -> int:
    # JSON does not tell 3 from 3.0.
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(1, MOST + 1):
        raise QueryError(f"{name!r} has to be a whole number from 1 to {MOST}.")
    return int(value)


def _mode(name: str, value: object) -> Mode:
    for mode in Mode:
        if value == str(mode):
            return mode
    raise QueryError(f"{name!r} has to be one of {', '.join(Mode)}.")


_TEXT = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}

NARROWING = {
    "k": Parameter(
        "k",
        "How many passages at most. Left out: as the user has set it, 3 at first.",
        {"type": "integer", "minimum": 1, "maximum": MOST},
        _number,
    ),
    "path": Parameter(
        "path_glob",
        "Only notes whose path matches this pattern, as in a .gitignore: 'work/**/*.md', 'projects/'.",
        _TEXT,
        _text,
    ),
    "folder": Parameter(
        "folder", "Only notes below this folder: its whole path on the user's machine.", _TEXT, _folder
    ),
    "heading": Parameter("heading", "Only passages below a heading that contains this text.", _TEXT, _text),
    "mode": Parameter(
        "mode",
        "Search by words (keyword), by meaning (vector), or by both (hybrid, which is the default).",
        {"type": "string", "enum": [str(mode) for mode in Mode]},
        _mode,
    ),
}


def schema(question: str, description: str) -> dict[str, Any]:
    """The JSON schema of a tool's arguments; `question` is the name of the one it cannot do without."""
    narrowing = {
        name: {**parameter.schema, "description": parameter.description}
        for name, parameter in NARROWING.items()
    }
    return {
        "type": "object",
        "properties": {question: {**_TEXT, "description": description}, **narrowing},
        "required": [question],
        "additionalProperties": False,
    }


def read(question: str, arguments: Mapping[str, Any]) -> tuple[str, SearchOptions]:
    """What is asked, and the options of the search. One that is null counts as left out.

    Raises:
        QueryError: one is unknown, missing, or not what it has to be.
    """
    names = [question, *NARROWING]
    for name in arguments:
        if name not in names:
            there_are = f"There are: {', '.join(names)}."
            raise QueryError(f"There is no parameter {name[:100]!r}.", remedy=there_are)
    asked = _text(question, arguments.get(question))
    given = {name: value for name, value in arguments.items() if value is not None and name != question}
    options = {NARROWING[name].option: NARROWING[name].read(name, value) for name, value in given.items()}
    return asked, cast("SearchOptions", options)
