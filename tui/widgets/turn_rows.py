"""Lines of text with an indent each, wrapped to the width and drawn as they are scrolled to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from tui.widgets.text_rows import TextRows

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Indented:
    """A line, which stands so many cells from the left, also where it is wrapped."""

    cells: int
    text: Content


class TurnRows(TextRows):
    """A scrollable text of indented lines."""

    def __init__(self, lines: Sequence[Indented] = ()) -> None:
        super().__init__()
        self._lines = tuple(lines)
        self._key = ""

    def put(self, lines: Sequence[Indented], key: str = "") -> None:
        """Show lines; the scroll position stays while they are about the same `key`."""
        if tuple(lines) == self._lines and key == self._key:
            return
        stay, self._key, self._lines = key == self._key, key, tuple(lines)
        self.lay_out()
        if not stay:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def laid_out(self, width: int) -> Sequence[Content]:
        """See `TextRows`."""
        rows: list[Content] = []
        for each in self._lines:
            indent = Content(" " * each.cells)
            rows += [indent + row for row in each.text.wrap(max(width - each.cells, 1)) or [Content()]]
        return rows
