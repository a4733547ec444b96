"""Rows of text that are laid out anew for each width and drawn line by line, however many there are."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from tui.widgets import citation_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.content import Content


class TextRows(ScrollView, can_focus=True, inherit_bindings=False):
    """A scrollable text; subclasses say in `laid_out` what its rows are at a width."""

    DEFAULT_CSS = "TextRows { overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }"

    def __init__(self) -> None:
        super().__init__()
        self._laid: Sequence[Content] = ()

    @abstractmethod
    def laid_out(self, width: int) -> Sequence[Content]:
        """The rows, each of at most `width` cells."""

    def lay_out(self) -> None:
        """Lay out and draw what there is to show now."""
        width = self.scrollable_content_region.width
        self._laid = self.laid_out(width) if width else ()
        self.virtual_size = Size(width, len(self._laid))
        self.refresh()

    def scroll_by(self, by: int) -> None:
        """Scroll by so many rows."""
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self.lay_out()

    def render_line(self, y: int) -> Strip:
        """The row that is scrolled there."""
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= len(self._laid):
            return Strip.blank(width, self.rich_style)
        row = citation_text.row(self._laid[at], width)
        strips = Visual.to_strips(self, row, width, 1, self.visual_style)
        return strips[0].adjust_cell_length(width, self.rich_style) if strips else Strip.blank(width)
