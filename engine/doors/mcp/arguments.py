"""What the tools take: of each a list, from which both the schema that clients see and the reading are made.

Clients do not always keep to a schema, and models never: each value is read, and refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import QueryError
from engine.notes.model import Mode
from engine.settings.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_TEXT = 8_000
"""Characters of a question, a pattern, a heading or a folder."""

MOST = 50
"""Passages one call gives at most: a model has to read them all."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of a tool's parameters. `option` is its name in the engine; `read` refuses what it cannot be."""

    option: str
    description: str
    schema: Mapping[str, Any]
    read: Callable[[str, Any], Any]
    required: bool = False


Parameters = Mapping[str, Parameter]


def text(option: str, description: str, *, longest: int = LONGEST_TEXT, required: bool = False) -> Parameter:
    """A parameter that is a text which is not blank."""

    def read(name: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > longest:
            raise QueryError(f"{name!r} has to be a text of 1 to {longest:,} characters.")
        return value

    return Parameter(option, description, {**_TEXT, "maxLength": longest}, read, required)


def number(option: str, description: str, *, most: int = MOST, required: bool = False) -> Parameter:
    """A parameter that is a whole number from 1 to `most`."""

    def read(name: str, value: object) -> int:
        # JSON does not tell 3 from 3.0.
        if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(1, most + 1):
            raise QueryError(f"{name!r} has to be a whole number from 1 to {most}.")
        return int(value)

    return Parameter(option, description, {"type": "integer", "minimum": 1, "maximum": most}, read, required)


def time(option: str, description: str) -> Parameter:
    """A parameter that is a time as ISO 8601 writes it."""

    def read(name: str, value: object) -> datetime:
        try:
            return datetime.fromisoformat(value if isinstance(value, str) else "")
        except ValueError as error:
            raise QueryError(f"{name!r} has to be a time such as 2026-05-04T10:00:00+02:00.") from error

    return Parameter(option, description, {"type": "string"}, read)


_TEXT = {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT}


def _folder(name: str, value: object) -> Path:
    return expanded(Path(FOLDER.read(name, value))).absolute()


def _mode(name: str, value: object) -> Mode:
    for mode in Mode:
        if value == str(mode):
            return mode
    raise QueryError(f"{name!r} has to be one of {', '.join(Mode)}.")


FOLDER = text("folder", "Only notes below this folder: its whole path on the user's machine.")

NARROWING: Parameters = {
    "k": number("k", "How many passages at most. Left out: as the user has set it, 3 at first."),
    "path": text(
        "path_glob",
        "Only notes whose path matches this pattern, as in a .gitignore: 'work/**/*.md', 'projects/'.",
    ),
    "folder": replace(FOLDER, read=_folder),
    "heading": text("heading", "Only passages below a heading that contains this text."),
    "mode": Parameter(
        "mode",
        "Search by words (keyword), by meaning (vector), or by both (hybrid, which is the default).",
        {"type": "string", "enum": [str(mode) for mode in Mode]},
        _mode,
    ),
}


def schema(parameters: Parameters) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {
            name: {**parameter.schema, "description": parameter.description}
            for name, parameter in parameters.items()
        },
        "required": [name for name, parameter in parameters.items() if parameter.required],
        "additionalProperties": False,
    }


def read(parameters: Parameters, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their names in the engine. One that is null counts as left out.

    Raises:
        QueryError: one is unknown, missing, or not what it has to be.
    """
    for name in arguments:
        if name not in parameters:
            there_are = f"There are: {', '.join(parameters)}." if parameters else "There are none."
            raise QueryError(f"There is no parameter {name[:100]!r}.", remedy=there_are)
    return {
        parameter.option: parameter.read(name, arguments.get(name))
        for name, parameter in parameters.items()
        if parameter.required or arguments.get(name) is not None
    }
