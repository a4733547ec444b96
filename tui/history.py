"""The queries asked before, kept across sessions: one JSON string a line, newest last.

Lines are only ever appended, so two sessions never lose each other's queries; the file is written
anew, bounded, when it has grown to twice what is kept. A damaged line costs that line only.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEPT = 500
"""Queries remembered: enough to search by hand, small enough to read in a millisecond."""

LONGEST = 1_000
"""Characters; a longer query was pasted by mistake and is not worth walking past again."""


class History:
    """A bounded list of distinct queries with a cursor for up and down."""

    def __init__(self, file: Path | None, *, kept: int = KEPT) -> None:
        self._file = file
        self._kept = kept
        self._entries: list[str] = []
        self._at: int | None = None
        self._draft = ""

    @property
    def entries(self) -> tuple[str, ...]:
        """Distinct queries, oldest first."""
        return tuple(self._entries)

    @property
    def walking(self) -> bool:
        """Whether `older` has left the draft that was being typed."""
        return self._at is not None

    def load(self) -> None:
        """Read the file; what was asked before it was read stays newest. Raises OSError."""
        if self._file is None:
            return
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return
        fresh = self._entries
        self._entries = _fold([*_parsed(lines), *fresh], self._kept)
        if len(lines) > 2 * self._kept:
            self._rewrite()

    def add(self, query: str) -> bool:
        """Make `query` the newest and end any walk; False when there was nothing to remember."""
        self.rest()
        query = query.strip()
        if not query or len(query) > LONGEST or not _encodable(query):
            return False
        if self._entries and self._entries[-1] == query:
            return False
        self._entries = _fold([*self._entries, query], self._kept)
        return True

    def save(self, query: str) -> None:
        """Append `query` to the file. Raises OSError."""
        if self._file is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as handle:
            handle.write(f"{json.dumps(query.strip())}\n".encode())

    def older(self, draft: str) -> str | None:
        """The query before the one shown; `draft` is what stands in the input, kept to come back to."""
        at = len(self._entries) if self._at is None else self._at
        while at > 0:
            at -= 1
            if self._at is not None or self._entries[at] != draft.strip():
                break
        else:
            return None
        if self._at is None:
            self._draft = draft
        self._at = at
        return self._entries[at]

    def newer(self) -> str | None:
        """The query after the one shown, at last the draft; None when not walking."""
        if self._at is None:
            return None
        self._at += 1
        if self._at < len(self._entries):
            return self._entries[self._at]
        self.rest()
        return self._draft

    def rest(self) -> None:
        """End the walk: what stands in the input is a draft again."""
        self._at = None

    def _rewrite(self) -> None:
        if self._file is None:
            return
        beside = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write("".join(f"{json.dumps(entry)}\n" for entry in self._entries).encode())
        beside.replace(self._file)


def _parsed(lines: list[str]) -> list[str]:
    """The lines that are what this program writes: a JSON string of bearable length."""
    entries = []
    for line in lines:
        if len(line) > LONGEST * 12:  # a character is at most two \\uXXXX escapes
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, str) and entry.strip() and len(entry) <= LONGEST and _encodable(entry):
            entries.append(entry.strip())
    return entries


def _fold(entries: list[str], kept: int) -> list[str]:
    """Each query once, at its newest place; the newest `kept` of them."""
    newest = list(dict.fromkeys(reversed(entries)))[:kept]
    newest.reverse()
    return newest


def _encodable(text: str) -> bool:
    """Whether there is no lone surrogate in it, which no terminal and no database can take."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
