"""Marks: a set of row keys that outlives refreshes, with an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

UNDO_DEPTH = 50
"""Changes that can be taken back; more nobody remembers having made."""


class Marks:
    """Keys that are marked. Every change can be undone; `listener` is told of every change."""

    def __init__(self) -> None:
        self._keys: frozenset[str] = frozenset()
        self._before: list[frozenset[str]] = []
        self.listener: Callable[[], object] = lambda: None

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._keys))

    def toggle(self, key: str) -> None:
        """Mark, or unmark."""
        self._set(self._keys ^ {key})

    def toggle_all(self, keys: Iterable[str]) -> bool:
        """Mark all of these, or unmark them if all are marked. Returns whether they are marked now."""
        shown = frozenset(keys)
        marking = not shown <= self._keys
        self._set(self._keys | shown if marking else self._keys - shown)
        return marking

    def clear(self) -> None:
        """Unmark everything."""
        self._set(frozenset())

    def undo(self) -> bool:
        """Take the last change back. Returns False when there is none."""
        if not self._before:
            return False
        self._keys = self._before.pop()
        self.listener()
        return True

    def forget(self, keys: Iterable[str]) -> None:
        """Drop keys whose rows were acted upon; an undo does not bring them back."""
        gone = frozenset(keys)
        if not gone:
            return
        self._keys -= gone
        self._before = [before - gone for before in self._before]
        self.listener()

    def _set(self, keys: frozenset[str]) -> None:
        if keys != self._keys:
            self._before = [*self._before[1 - UNDO_DEPTH :], self._keys]
            self._keys = keys
            self.listener()
