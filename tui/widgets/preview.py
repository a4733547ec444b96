"""The cited lines as they are on the disk now, numbered and scrollable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from tui.text import content
from tui.widgets import citation_text
from tui.widgets.label import Label
from tui.widgets.preview_text import Rows, rows

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from engine.notes.model import Citation, Preview

ABOVE = 3
"""Rows of context left above the first cited line when a preview comes up."""


class PreviewLines(ScrollView, can_focus=True, inherit_bindings=False):
    """The rows of a preview, laid out anew for each width and drawn line by line."""

    DEFAULT_CSS = "PreviewLines { overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }"

    def __init__(self) -> None:
        super().__init__()
        self._source: tuple[Preview, Citation] | None = None
        self._rows = Rows()

    def put(self, preview: Preview | None, citation: Citation | None, *, stay: bool) -> None:
        """Show a preview; `stay` keeps the scroll position."""
        self._source = None if preview is None or citation is None else (preview, citation)
        self._lay_out()
        if not stay:
            self.scroll_to(y=max(self._rows.first - ABOVE, 0), animate=False, force=True, immediate=True)

    def scroll_by(self, by: int) -> None:
        """Scroll by so many rows."""
        self.scroll_to(y=self.scroll_offset.y + by, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Lay out for the new width."""
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        self._rows = rows(*self._source, width) if self._source is not None and width else Rows()
        self.virtual_size = Size(width, len(self._rows.rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The row that is scrolled there."""
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= len(self._rows.rows):
            return Strip.blank(width, self.rich_style)
        row = citation_text.row(self._rows.rows[at], width)
        strips = Visual.to_strips(self, row, width, 1, self.visual_style)
        return strips[0].adjust_cell_length(width, self.rich_style) if strips else Strip.blank(width)


class CitationPreview(Vertical):
    """A heading with reference and freshness, and the lines under it."""

    DEFAULT_CSS = """
    CitationPreview > .preview-title { height: 1; background: $panel; }
    CitationPreview > PreviewLines { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines = PreviewLines()
        self._title = Label(classes="preview-title")
        self._shown: tuple[Preview, Citation] | None = None
        self._key = ""

    def compose(self) -> ComposeResult:
        """Title and lines."""
        yield self._title
        yield self.lines

    def put(self, preview: Preview, citation: Citation, key: str) -> None:
        """Show a preview of the citation with this key; the same one keeps its place."""
        if self._shown == (preview, citation):
            return
        self._shown = (preview, citation)
        stay, self._key = key == self._key, key
        self.lines.put(preview, citation, stay=stay)
        self._draw_title()

    def clear(self, why: str = "") -> None:
        """Nothing to preview, and why."""
        self._shown, self._key = None, ""
        self.lines.put(None, None, stay=False)
        self._title.put(content(why, "$text-muted"))

    def on_resize(self) -> None:
        """The title is cut to the width."""
        self._draw_title()

    def _draw_title(self) -> None:
        if self._shown is None:
            return
        preview, citation = self._shown
        state = citation_text.freshness_text(preview.freshness)
        room = max(self.size.width - state.cell_length - 3, 1)
        self._title.put(Content.assemble(" ", citation_text.reference(citation, room), "  ", state))
