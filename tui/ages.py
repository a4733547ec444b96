"""Ages and times of day as short text. Every function takes the present from the caller's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

MINUTE, HOUR, DAY = 60, 3600, 86400


def age(then: datetime | None, now: datetime) -> str:
    """`now` (less than a minute), `4m`, `2h`, `3d`; at most four cells up to 27 years."""
    if then is None:
        return ""
    seconds = (now - then).total_seconds()
    if seconds < MINUTE:
        return "now"
    if seconds < HOUR:
        return f"{int(seconds // MINUTE)}m"
    if seconds < DAY:
        return f"{int(seconds // HOUR)}h"
    return f"{int(seconds // DAY)}d"


def ago(then: datetime | None, now: datetime) -> str:
    """The same in words: `just now`, `4m ago`."""
    short = age(then, now)
    return "just now" if short == "now" else f"{short} ago" if short else ""


def clock(then: datetime, now: datetime) -> str:
    """The local time of day, with the date when it is not today's."""
    local, today = then.astimezone(), now.astimezone()
    return local.strftime("%H:%M:%S" if local.date() == today.date() else "%Y-%m-%d %H:%M")
