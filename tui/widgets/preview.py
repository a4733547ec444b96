"""The cited lines as they are on the disk now, numbered and scrollable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical
from textual.content import Content

from tui.text import content
from tui.widgets import citation_text
from tui.widgets.label import Label
from tui.widgets.preview_text import Rows, rows
from tui.widgets.text_rows import TextRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from engine.notes.model import Citation, Preview

ABOVE = 3
"""Rows of context left above the first cited line when a preview comes up."""


class PreviewLines(TextRows):
    """The rows of a preview."""

    def __init__(self) -> None:
        super().__init__()
        self._source: tuple[Preview, Citation] | None = None
        self._first = 0

    def put(self, preview: Preview | None, citation: Citation | None, *, stay: bool) -> None:
        """Show a preview; `stay` keeps the scroll position."""
        self._source = None if preview is None or citation is None else (preview, citation)
        self.lay_out()
        if not stay:
            self.scroll_to(y=max(self._first - ABOVE, 0), animate=False, force=True, immediate=True)

    def laid_out(self, width: int) -> Sequence[Content]:
        """See `TextRows`."""
        found = rows(*self._source, width) if self._source is not None else Rows()
        self._first = found.first
        return found.rows


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
