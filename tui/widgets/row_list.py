"""The table of every pane: a window of rows that costs only what is on the screen.

Rows are known by key. New rows are laid over the old ones: the cursor stays on its row and that row stays
at its height, only lines that differ are painted again. Rows that are not in the window are the owner's
to fetch: moving past an end posts `Edge`. Text is made safe here, line by line, when it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tui.text import cut, cut_path, plain
from tui.widgets.marks import Marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.style import Style
    from textual import events

GUTTER = 3
"""Cells before the first column: cursor, mark, a space."""
GAP = 2
"""Cells between two columns."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `width` cells; 0 shares what is left. Below `from_width` cells in all it is left out."""

    title: str
    width: int = 0
    right: bool = False
    path: bool = False
    """Cut at the beginning: the end of a path says more."""
    from_width: int = 0
    share: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its key, its cells as raw text, and their tones (`muted`, `error`, `warning`, `good`)."""

    key: str
    cells: tuple[str, ...]
    tones: tuple[str, ...] = ()


class RowList(ScrollView, can_focus=True):
    """A list of rows with a cursor and marks, driven by the actions of its pane."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"row-list--{part}"
        for part in ("header", "cursor", "blurred", "mark", "muted", "error", "warning", "good", "row")
    }

    class Moved(Message):
        """The cursor is on another row, or its row has new content."""

    class Edge(Message):
        """The cursor wants to go past an end of the window: `by` rows."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    class Chosen(Message):
        """A row was clicked twice."""

    def __init__(self, columns: Sequence[Column], marks: Marks | None = None) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self.marks = Marks() if marks is None else marks
        self.rows: tuple[Row, ...] = ()
        self.cursor = 0
        self._nothing = ""

    @property
    def nothing(self) -> str:
        """What is said when there are no rows."""
        return self._nothing

    @nothing.setter
    def nothing(self, text: str) -> None:
        if text != self._nothing:
            self._nothing = text
            if not self.rows:
                self.refresh()

    @property
    def current(self) -> Row | None:
        """The row under the cursor."""
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def page(self) -> int:
        """Rows that fit on the screen."""
        return max(self.size.height - 1, 1)

    def on_mount(self) -> None:
        """Marks may change anywhere; the lines that show them follow."""
        self.marks.listener = self.refresh

    # Content ---------------------------------------------------------------------------------

    def put(self, rows: Sequence[Row]) -> None:
        """Lay new rows over the old."""
        old, before = self.rows, self.current
        self.rows = tuple(rows)
        height = self.cursor - self.scroll_offset.y
        self.cursor = self._find(before)
        if len(old) != len(self.rows):
            self.virtual_size = Size(self.size.width, len(self.rows) + 1)
            self.refresh()
        self._scroll(self.cursor - height)
        self._refresh_differences(old)
        if before != self.current:
            self.post_message(self.Moved())

    def _find(self, row: Row | None) -> int:
        if row is not None:
            for index, each in enumerate(self.rows):
                if each.key == row.key:
                    return index
        return max(min(self.cursor, len(self.rows) - 1), 0)

    def _refresh_differences(self, old: Sequence[Row]) -> None:
        top = self.scroll_offset.y
        for y in range(self.page):
            here = top + y
            if (old[here] if here < len(old) else None) != (
                self.rows[here] if here < len(self.rows) else None
            ):
                self._refresh_row(here)

    def _refresh_row(self, index: int) -> None:
        y = index - self.scroll_offset.y + 1
        if 1 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    # Moving ----------------------------------------------------------------------------------

    def move(self, by: int) -> None:
        """Move the cursor; past an end of the window, ask the owner for more."""
        wanted = self.cursor + by
        self.move_to(wanted)
        if wanted != self.cursor:
            self.post_message(self.Edge(wanted - self.cursor))

    def move_to(self, index: int) -> None:
        """Put the cursor on a row of the window."""
        before, self.cursor = self.cursor, max(min(index, len(self.rows) - 1), 0)
        self._scroll(self.scroll_offset.y)
        if before != self.cursor:
            self._refresh_row(before)
            self._refresh_row(self.cursor)
            self.post_message(self.Moved())

    def _scroll(self, top: int) -> None:
        """Scroll as near to `top` as lets the cursor be seen."""
        top = max(min(top, self.cursor), self.cursor - self.page + 1)
        top = max(min(top, len(self.rows) - self.page), 0)
        if top != self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        """Keep the cursor on the screen."""
        self.virtual_size = Size(self.size.width, len(self.rows) + 1)
        self._scroll(self.scroll_offset.y)

    def on_focus(self) -> None:
        """The cursor looks different with the focus."""
        self._refresh_row(self.cursor)

    def on_blur(self) -> None:
        """And without."""
        self._refresh_row(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; a second one opens."""
        index = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and index < len(self.rows):
            self.move_to(index)
            if event.chain == 2:
                self.post_message(self.Chosen())

    # Drawing ---------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        """The header, or the row that is scrolled there."""
        width = self.scrollable_content_region.width  # a scrollbar takes a cell that no row may use
        widths = self._widths(width)
        if y == 0:
            titles = (self._fit(column.title, w, column) for column, w in widths)
            style = self.get_component_rich_style("row-list--header")
            text = " " * GUTTER + (" " * GAP).join(titles)
            return Strip([Segment(set_cell_size(text, width), style)], width)
        index = y - 1 + self.scroll_offset.y
        if index >= len(self.rows):
            said = self.nothing.splitlines() if not self.rows else []
            text = f"  {plain(said[index - 1])}" if 1 <= index <= len(said) else ""
            style = self.get_component_rich_style("row-list--row") + self._style("muted")
            return Strip([Segment(cut(text, width), style)]).adjust_cell_length(width, style)
        return self._draw(self.rows[index], widths, width, here=index == self.cursor)

    def _draw(self, row: Row, widths: list[tuple[Column, int]], width: int, *, here: bool) -> Strip:
        base = self._style("blurred" if here and not self.has_focus else "cursor" if here else "row")
        marked = row.key in self.marks
        parts = [
            Segment("▸" if here else " ", base),
            Segment("●" if marked else " ", base + self._style("mark", here=here) if marked else base),
            Segment(" ", base),
        ]
        shown = {column.title for column, _ in widths}
        cells = [pair for pair in enumerate(self.columns) if pair[1].title in shown]
        for (at, column), (_, cells_wide) in zip(cells, widths, strict=True):
            tone = row.tones[at] if at < len(row.tones) else ""
            style = base + self._style(tone, here=here) if tone else base
            parts += [Segment(self._fit(row.cells[at], cells_wide, column), style), Segment(" " * GAP, base)]
        return Strip(parts).adjust_cell_length(width, base)

    def _style(self, part: str, *, here: bool = False) -> Style:
        """A component's style; on the cursor's line only what is not colour counts."""
        style = self.get_component_rich_style(
            f"row-list--{part}", partial=part not in {"row", "cursor", "blurred"}
        )
        return style.without_color if here else style

    def _widths(self, width: int) -> list[tuple[Column, int]]:
        columns = [column for column in self.columns if self.size.width >= column.from_width]
        fixed = sum(column.width for column in columns) + GUTTER + GAP * (len(columns) - 1)
        free = [column for column in columns if not column.width]
        shares = sum(column.share for column in free)
        left = max(width - fixed, 0)
        return [(each, each.width or max(left * each.share // shares, 1)) for each in columns]

    @staticmethod
    def _fit(text: str, width: int, column: Column) -> str:
        # No column is wider than a line of the terminal: what lies beyond need not be made safe.
        shown = plain(text[-4 * width :] if column.path else text[: 4 * width])
        shown = cut_path(shown, width) if column.path else cut(shown, width)
        room = " " * (width - cell_len(shown))
        return room + shown if column.right else shown + room
