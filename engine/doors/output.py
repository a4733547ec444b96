"""What a command says and how: safe text on standard output, complaints on standard error, strict JSON.

Text from notes, file names and errors is hostile: all of it passes `visible` before a terminal sees
it, whole lines at a time, so that columns are measured as they are shown; `engine.doors.streams` guards the
streams themselves. JSON is pure ASCII, so it needs no such guard, and never holds NaN.
"""

from __future__ import annotations

import dataclasses
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from engine.text.safe import spelt, visible


def say(line: str = "") -> None:
    """A line on standard output; no name and no error that is quoted in it can begin another."""
    click.echo(visible(line, keep_newlines=False))


def say_text(text: str) -> None:
    """A text of several lines on standard output."""
    click.echo(visible(text))


def say_piece(text: str) -> None:
    """A part of a text on standard output, at once and without an end of line.

    What steers a terminal is made visible character by character, so it does not matter where it is torn.
    """
    click.echo(visible(text), nl=False)


def note(line: str) -> None:
    """A remark on standard error, which leaves the output itself as it is for a reader by pipe."""
    click.echo(visible(line, keep_newlines=False), err=True)


def confirm(question: str) -> None:
    """Ask whoever sits at the terminal, on standard error.

    Raises:
        click.Abort: the answer is no.
    """
    click.confirm(visible(question, keep_newlines=False), abort=True, err=True)


def complain(title: str, message: str, remedy: str = "") -> None:
    """An error as one sentence on standard error."""
    click.echo(visible(f"{title}: {message} {remedy}".strip(), keep_newlines=False), err=True)


def dump(value: object) -> None:
    """A value as indented JSON on standard output."""
    click.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def dump_line(value: object) -> None:
    """A value as one line of JSON, for output that goes on."""
    click.echo(json.dumps(plain(value), allow_nan=False))


def plain(value: object) -> Any:  # noqa: ANN401 - the JSON types have no name of their own
    r"""A value of the engine as JSON types: dataclasses as objects, paths and times as text.

    A file name that is not UTF-8 is spelt as it is shown, `\xff` for a byte: half of a surrogate pair is
    legal in JSON, and half of its readers refuse it.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, bool | int | float) or value is None:
        return value
    if dataclasses.is_dataclass(value):
        value = {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {spelt(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else spelt(str(value))


def table(rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns as wide as their widest cell; the last column runs free."""
    shown = [[visible(cell, keep_newlines=False) for cell in row] for row in rows]
    columns = list(zip(*shown, strict=True))[:-1]
    widths = [max(width(cell) for cell in column) for column in columns]
    for row in shown:
        cells = [cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())


def width(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, combining ones none."""
    return sum(_cell(character) for character in text)


def _cell(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Cf", "Me", "Mn"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def indent(text: str) -> str:
    """Each line moved four cells to the right; an empty line stays empty."""
    return "\n".join(f"    {line}" if line.strip() else "" for line in text.split("\n"))
