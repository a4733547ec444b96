"""Amounts in words, the same on the screen and on the command line."""

from __future__ import annotations

MINUTE = 60


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `14,388 files`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """How long something takes: `12 s`, `4 min`, `2 h 10 min`."""
    if seconds < MINUTE:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / MINUTE)
    if minutes < MINUTE:
        return f"{minutes} min"
    hours, rest = divmod(minutes, MINUTE)
    return f"{hours} h {rest} min" if rest else f"{hours} h"
