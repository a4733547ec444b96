"""Files of JSON lines: read one by one with bounded memory, while another program writes on at their end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from engine.memory.importers.model import Skip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a line: one with pictures in it may be of any size, and holds nothing that is said."""

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]] | Skip]:
    """Each line's object with its origin, `name:Lnumber`. A last line without an end that is no JSON yet is
    still being written, and is the end.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            origin = f"{path.name}:L{number}"
            if len(line) > LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                yield Skip(origin, f"longer than {LONGEST_LINE // 2**20} MB")
                continue
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                if line.endswith(b"\n"):
                    yield Skip(origin, "not JSON")
                continue
            if isinstance(found, dict):
                yield origin, found
            else:
                yield Skip(origin, "not an object")


def moment(value: object) -> datetime | None:
    """A time in ISO 8601, or in seconds since 1970; None for what is none, or lies in no one's life."""
    found: datetime | None = None
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found = datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if found is None:
        return None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    try:
        sensible = _EARLIEST <= found <= datetime.now(UTC) + timedelta(days=1)
    except OverflowError:  # a zone that leads out of the calendar
        return None
    return found.astimezone(UTC) if sensible else None


def table(value: object) -> dict[str, Any]:
    """An object; of anything else an empty one."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str:
    """A string; of anything else nothing."""
    return value if isinstance(value, str) else ""
