"""A pane that is a list: cursor, marks, filter, paging in SQL, and an area for the row's detail.

The filter asks the engine anew; it never hides rows here. Ages are worked out when rows are drawn, and
drawn again at the first key after a minute has passed: a clock that ticks would keep the line busy.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on
from textual.widgets import Input

from engine.errors import NoctuaryError
from engine.text.amounts import count
from tui.clipboard import copy
from tui.editor import edit
from tui.keymap import bindings
from tui.messages import Flash
from tui.panes.base import Pane, Shown
from tui.text import content, plain
from tui.widgets.label import Label
from tui.widgets.line_input import LineInput
from tui.widgets.marks import Marks
from tui.widgets.row_list import Column, Row, RowList

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.content import Content
    from textual.widget import Widget

S = TypeVar("S")


class ListPane(Pane[S]):
    """The rows of a snapshot in a `RowList`; subclasses give columns, rows and what a row means."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list")]
    columns: ClassVar[tuple[Column, ...]] = ()
    filter_takes: ClassVar[str] = ""
    """What may be typed into the filter, said while it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self.marks = Marks()
        self._subjects: dict[str, str] = {}
        self.list = RowList(self.columns, self.marks)
        self.filter_text = ""
        self._last_filter = ""
        self._filter = LineInput(self.filter_takes, id=f"{self.scope}-filter")
        self._filter.add_class("filter")
        self._summary = Label(classes="summary")
        self.detail = Label(classes="detail")

    def body(self) -> ComposeResult:
        """What is above the rows, the rows, the detail, and the filter."""
        yield from self.above()
        yield self._summary
        self.list.add_class("body")
        yield self.list
        yield self.detail
        yield from self.below()
        yield self._filter

    def focus_target(self) -> Widget:
        """The filter while it is being typed, else the rows."""
        return self._filter if self._filter.display else self.list

    # To be filled in -------------------------------------------------------------------------

    def above(self) -> ComposeResult:
        """Widgets above the summary line."""
        yield from ()

    def below(self) -> ComposeResult:
        """Widgets below the detail."""
        yield from ()

    @abstractmethod
    def rows(self, snapshot: S) -> Sequence[Row]:
        """The rows of a snapshot."""

    @abstractmethod
    def summary(self, snapshot: S) -> Content:
        """The line above the rows: what is shown, of how much."""

    def nothing(self) -> str:
        """The sentence when there are no rows."""
        return "Nothing here."

    def describe(self, row: Row) -> Content | None:  # noqa: ARG002  (panes that have more to say override it)
        """Everything about a row, for the area below the rows; None when the row says it all."""
        return None

    def subject(self, row: Row) -> str:
        """What `y` copies."""
        return row.cells[0]

    def file(self, row: Row) -> Path | None:  # noqa: ARG002
        """The file of a row, for the editor."""
        return None

    def shown(self, state: Shown, text: str = "") -> None:
        """Rows stay in place in every state, so that the keys work; what is missing is said among them."""
        super().shown(Shown.DATA if state is Shown.EMPTY else state, text)
        self.add_class(Shown.DATA)
        if state is Shown.EMPTY:
            self.list.nothing = text
            self.list.put(())

    # Showing ---------------------------------------------------------------------------------

    def show(self, snapshot: S) -> None:
        """Lay the rows over what is there."""
        rows = self.rows(snapshot)
        self.list.put(rows)
        self._summary.put(self.summary(snapshot))
        self.list.nothing = f"No row has “{self.filter_text}”." if self.filter_text else self.nothing()
        self.show_detail()

    def redraw(self) -> None:
        """Draw the last snapshot again, for what depends on the clock."""
        if self.snapshot is not None:
            self.show(self.snapshot)

    def show_detail(self) -> None:
        """Describe the row under the cursor."""
        row = self.list.current
        self.detail.put((self.describe(row) if row is not None else None) or content(""))

    @on(RowList.Moved)
    def _row_changed(self) -> None:
        self.show_detail()

    @on(RowList.Chosen)
    def _row_chosen(self) -> None:
        self.do_open()

    # Moving ----------------------------------------------------------------------------------

    def do_down(self) -> None:
        """Down one row."""
        self.list.move(1)

    def do_up(self) -> None:
        """Up one row."""
        self.list.move(-1)

    def do_half_down(self) -> None:
        """Down half a page."""
        self.list.move(max(self.list.page // 2, 1))

    def do_half_up(self) -> None:
        """Up half a page."""
        self.list.move(-max(self.list.page // 2, 1))

    def do_top(self) -> None:
        """To the first row."""
        self.list.move_to(0)

    def do_bottom(self) -> None:
        """To the last row."""
        self.list.move_to(len(self.list.rows) - 1)

    # Filter ----------------------------------------------------------------------------------

    def do_filter(self) -> None:
        """Open the filter."""
        self._filter.display = True
        self._filter.focus()

    @on(Input.Changed, ".filter")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        if event.value != self.filter_text:
            self.filter_text = event.value
            self._last_filter = event.value or self._last_filter
            self.filter_changed()

    def filter_changed(self) -> None:
        """The filter has other text: ask anew."""
        self.request(restart=True)

    @on(Input.Submitted, ".filter")
    def _keep_filter(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_filter()

    def take_filter(self, text: str) -> None:
        """Have this in the filter, as if it had been typed, and ask for nothing yet."""
        self.filter_text = text
        self._last_filter = text or self._last_filter
        with self._filter.prevent(Input.Changed):
            self._filter.value = text
        if self._filter.display:
            self._close_filter()

    def _close_filter(self) -> None:
        self._filter.display = False
        self.list.focus()

    def do_clear(self) -> None:
        """Drop the filter, else the marks; never leave."""
        if self._filter.display or self.filter_text:
            self._filter.value = ""
            self._close_filter()
        elif len(self.marks):
            self.marks.clear()
            self._marks_changed()

    def do_next_match(self) -> None:
        """The next row that matches the last filter."""
        self._to_match(1)

    def do_previous_match(self) -> None:
        """The row before that matches it."""
        self._to_match(-1)

    def _to_match(self, step: int) -> None:
        wanted = self._last_filter.casefold()
        if not wanted:
            key = self.host.keys.shown("list.filter")
            self.flash(f"No filter yet: {key} sets one")
            return
        total = len(self.list.rows)
        for distance in range(1, total + 1):
            index = (self.list.cursor + step * distance) % total
            if any(wanted in cell.casefold() for cell in self.list.rows[index].cells):
                self.list.move_to(index)
                return
        self.flash(f"No row shown has “{self._last_filter}”")

    # Marks -----------------------------------------------------------------------------------

    def do_mark(self) -> None:
        """Mark or unmark the row and go on to the next."""
        row = self.list.current
        if row is not None:
            self._subjects[row.key] = self.subject(row)
            self.marks.toggle(row.key)
            self._marks_changed()
            self.list.move_to(self.list.cursor + 1)

    def do_mark_all(self) -> None:
        """Mark all rows shown, or none."""
        self.mark_all({row.key: self.subject(row) for row in self.list.rows})

    def mark_all(self, subjects: Mapping[str, str]) -> None:
        """Mark all of these, or none. What is copied of a row is kept: its mark may outlive it here."""
        self._subjects.update(subjects)
        self.marks.toggle_all(subjects)
        self._marks_changed()

    def do_unmark(self) -> None:
        """Take the last change of the marks back."""
        if not self.marks.undo():
            self.flash("Nothing to undo: no marks were changed")
        self._marks_changed()

    def _marks_changed(self) -> None:
        """The rows stay as they are, and the list shows their marks; only the count is said anew."""
        if self.snapshot is not None:
            self._summary.put(self.summary(self.snapshot))

    def marked(self) -> str:
        """How many marks there are, for the summary line."""
        return f" · {count(len(self.marks), 'mark')}" if len(self.marks) else ""

    # Row actions -----------------------------------------------------------------------------

    def unavailable(self, action: str) -> str:
        """Row actions need a row."""
        needs_row = action in {"list.mark", "list.mark-all", "list.copy", "list.open"}
        return "There is no row here" if needs_row and self.list.current is None else ""

    def do_refresh(self) -> None:
        """Read again."""
        self.request(restart=True)

    def do_copy(self) -> None:
        """Copy the subjects of the chosen rows, one on a line."""
        marked = [self._subjects[key] for key in self.marks]
        here = self.list.current
        # Pasted into a shell, a line feed in a name would run what follows it.
        text = "\n".join(plain(each) for each in marked or ([] if here is None else [self.subject(here)]))
        self.host.spawn(self._copy(text), f"{self.scope}.copy", "copy")

    async def _copy(self, text: str) -> None:
        copied = await copy(self.host, text)
        lines = text.count("\n") + 1
        what = text if lines == 1 else count(lines, "line")
        self.post_message(Flash(f"{what}: {copied.sentence}"))

    def do_open(self) -> None:
        """Open the row's file in the editor."""
        row = self.list.current
        file = self.file(row) if row is not None else None
        if file is None:
            self.flash("This row has no file to open")
            return
        self.host.spawn(self._edit(file), "editor", "open the editor")

    async def _edit(self, file: Path) -> None:
        try:
            await edit(self.host, file, 1, self.host.settings)
        except NoctuaryError as error:
            self.post_message(Flash(f"{error.title}: {error}", error=True))
