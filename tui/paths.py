"""Completion of folder names from the disk, as a shell does it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

MOST = 200
"""Folders offered at most: more cannot be looked through, and a slow disk is not read to its end."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a typed path can become: `text` is as much as is certain, `folders` all that fit."""

    text: str
    folders: tuple[str, ...]


def complete(typed: str) -> Completion:
    """Folders whose path begins with what was typed. Hidden ones only when a dot was typed.

    Reads the disk: call it in a thread.
    """
    if typed == "~":
        return Completion("~/", ())
    parent, _, start = typed.rpartition("/")
    try:
        base = Path(parent + "/" if "/" in typed else ".").expanduser()
        with os.scandir(base) as entries:
            names = sorted(entry.name for entry in entries if _fits(entry, start))[:MOST]
    except (OSError, RuntimeError, ValueError):  # no such folder; no such user's home; a NUL was pasted
        return Completion(typed, ())
    prefix = f"{parent}/" if "/" in typed else ""
    common = _beginning(names) if names else start
    text = prefix + common + ("/" if len(names) == 1 else "")
    return Completion(text, tuple(prefix + name + "/" for name in names))


def _fits(entry: os.DirEntry[str], start: str) -> bool:
    name = entry.name
    if not name.startswith(start) or (name.startswith(".") and not start.startswith(".")):
        return False
    try:
        name.encode("utf-8")
        return entry.is_dir()
    except (OSError, UnicodeEncodeError):
        return False


def _beginning(names: list[str]) -> str:
    """The longest text all names begin with; they are sorted, so the first and last decide."""
    first, last = names[0], names[-1]
    for at, (one, other) in enumerate(zip(first, last, strict=False)):
        if one != other:
            return first[:at]
    return first
