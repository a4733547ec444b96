"""Log: what the engine did, what was asked of the notes, and what language models took of tokens.

Three views in one list; what each shows and says is in `log_views`, here is what the keys do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.message import Message

from tui.keymap import bindings
from tui.live import REDUCED_REPAINTS, REPAINTS
from tui.panes.list_pane import ListPane
from tui.panes.log_text import views_line
from tui.panes.log_views import RecordsView, Seen, View, summary, views
from tui.text import content
from tui.widgets.label import Label

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.content import Content
    from textual.timer import Timer

    from engine import Engine
    from engine.activity import LogRecord
    from tui.panes.base import Fetched
    from tui.screens.main import MainScreen
    from tui.widgets.row_list import Row

SHOWN_ALREADY = "This view is shown already"


class LogPane(ListPane[Seen]):
    """The log, searches and asks, and tokens."""

    class Grown(Message):
        """Something was logged."""

    number = 8
    title = "Log"
    scope = "log"
    hints: tuple[str, ...] = RecordsView.hints
    columns = RecordsView.columns
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("log")]

    def __init__(self) -> None:
        super().__init__()
        self.records, self.queries, self.tokens = self._order = views()
        self.view: View[Any] = self.records
        self.marks = self.list.marks = self.view.marks
        self._views = Label(classes="totals")
        self._unlisten: Callable[[], object] | None = None
        self._timer: Timer | None = None

    def above(self) -> ComposeResult:
        """Which views there are."""
        yield self._views

    def on_mount(self) -> None:
        """The log is shown first."""
        self._show_views()

    def activate(self) -> None:
        """Listen from the first time on."""
        engine = self.host.engine
        if engine is not None and self._unlisten is None:
            self._unlisten = engine.log.listen(self._logged)
        super().activate()

    def on_unmount(self) -> None:
        """Stop listening."""
        if self._unlisten is not None:
            self._unlisten()

    def _logged(self, _record: LogRecord) -> None:
        """Called by the log, on any thread: only post."""
        self.post_message(self.Grown())

    @on(Grown)
    def _grown(self) -> None:
        """Read soon, once for many records. Where the log is not shown, it is read when it is."""
        if self.view is not self.records:
            return
        self.dirty = True
        if self.active and self._timer is None:
            rate = REDUCED_REPAINTS if self.host.settings.reduced_repaint else REPAINTS
            self._timer = self.set_timer(1 / rate, self._read)

    def _read(self) -> None:
        self._timer = None
        self.changed()

    async def fetch(self, engine: Engine) -> Seen:
        """What the view is about."""
        view = self.view
        return Seen(view, tuple(await view.fetch(engine, view.filter_text)))

    def on_fetched(self, message: Fetched) -> None:
        """What another view asked for is dropped: it asks anew when it is shown again."""
        if isinstance(message.snapshot, Seen) and message.snapshot.view is not self.view:
            message.stop()
            message.prevent_default()

    # Views -----------------------------------------------------------------------------------

    def arrive(self, kind: str) -> None:
        """At a view by its name; the inbox sends to what went wrong, and that is in the log."""
        named: dict[str, View[Any]] = {"queries": self.queries, "tokens": self.tokens}
        self._turn_to(named.get(kind, self.records))

    def _turn_to(self, view: View[Any]) -> None:
        """Show another view, where it was left, and read it anew."""
        if view is self.view:
            return
        self.view.at = self.list.current.key if self.list.current is not None else ""
        self.view = view
        self.topics, self.hints = view.topics, view.hints
        self.marks = self.list.marks = view.marks
        view.marks.listener = self.list.refresh
        self.take_filter(view.filter_text)
        self._lay_out()
        if self.active:
            cast("MainScreen", self.screen).show_hints()
        self.dirty = True
        if self.active:
            self.request(restart=True)

    def _lay_out(self) -> None:
        """The columns of the view, and the rows it had."""
        view = self.view
        self._show_views()
        self.list.put(())  # no row of another view may be drawn in these columns
        self.list.columns = view.columns
        self.list.refresh()
        self.snapshot = view.seen
        if view.seen is None:
            self._summary.put(content(""))
            self.show_detail()
            return
        self.show(view.seen)
        keys = [row.key for row in self.list.rows]
        if view.at in keys and not view.following:
            self.list.move_to(keys.index(view.at))

    def _show_views(self) -> None:
        self._views.put(views_line([view.title for view in self._order], self.view.title))

    # Showing ---------------------------------------------------------------------------------

    def rows(self, snapshot: Seen) -> Sequence[Row]:
        """One row an item."""
        return self.view.rows(snapshot.items, self.filter_text, self.host)

    def show(self, snapshot: Seen) -> None:
        """Lay the rows over what is there; following, go to the newest."""
        self.view.seen = snapshot
        super().show(snapshot)
        if self.view.following:
            self.list.move_to(len(self.list.rows) - 1)

    def summary(self, snapshot: Seen) -> Content:
        """What is shown."""
        return summary(snapshot, len(self.list.rows), self.marked(), self.host)

    def nothing(self) -> str:
        """There is nothing of it."""
        return self.view.nothing(self.host)

    def describe(self, row: Row) -> Content | None:
        """Everything about it."""
        item = self.view.item(row)
        return None if item is None else self.view.describe(item)

    def subject(self, row: Row) -> str:
        """The record, the query, or the day's tokens as one line."""
        item = self.view.item(row)
        return row.key if item is None else self.view.subject(item, row)

    def filter_changed(self) -> None:
        """Where all is here already, only draw it."""
        self.view.filter_text = self.filter_text
        self._narrowed()

    def _narrowed(self) -> None:
        if self.view.asks:
            self.request(restart=True)
        else:
            self.redraw()

    def label(self, action: str) -> str:
        """What an action is called in this view."""
        return self.view.labels.get(action) or super().label(action)

    # Keys ------------------------------------------------------------------------------------

    def unavailable(self, action: str) -> str:
        """What the tokens have none of, and the view that is there."""
        view = self.view
        if action == "log.follow" and not view.grows:
            return "Days are not followed: each row is brought up to date where it stands"
        if action == "log.level" and not view.levels:
            return "Tokens have no levels"
        if action in {"log.records", "log.queries", "log.tokens"}:
            named = getattr(self, action.removeprefix("log."))
            return SHOWN_ALREADY if named is view else ""
        return super().unavailable(action)

    def do_view(self) -> None:
        """Show the next view."""
        order: tuple[View[Any], ...] = self._order
        self._turn_to(order[(order.index(self.view) + 1) % len(order)])

    def do_records(self) -> None:
        """Show the log."""
        self._turn_to(self.records)

    def do_queries(self) -> None:
        """Show searches and asks."""
        self._turn_to(self.queries)

    def do_tokens(self) -> None:
        """Show the tokens."""
        self._turn_to(self.tokens)

    def do_open(self) -> None:
        """Ask a query again, in Search."""
        item = self.view.item(self.list.current)
        query = "" if item is None else self.view.query(item)
        if query:
            self.host.go("search", query)
        else:
            super().do_open()

    def do_follow(self) -> None:
        """Follow, or stop."""
        self.view.following = not self.view.following
        self.redraw()

    def do_level(self) -> None:
        """Show more or fewer levels, or kinds."""
        self.view.level = (self.view.level + 1) % len(self.view.levels)
        self._narrowed()

    def do_up(self) -> None:
        """Going up stops following: what is read must not run away."""
        self.view.following = False
        super().do_up()
        self.redraw()

    def do_half_up(self) -> None:
        """The same by half a page."""
        self.view.following = False
        super().do_half_up()
        self.redraw()

    def do_top(self) -> None:
        """To the oldest, without following."""
        self.view.following = False
        super().do_top()
        self.redraw()

    def do_bottom(self) -> None:
        """To the newest, and follow."""
        self.view.following = self.view.grows
        super().do_bottom()
        self.redraw()
