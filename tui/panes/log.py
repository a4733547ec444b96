"""Log: what the engine did, newest last, and followed as it grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.message import Message

from engine.text.amounts import count
from tui.ages import clock
from tui.keymap import bindings
from tui.live import REDUCED_REPAINTS, REPAINTS
from tui.panes.list_pane import ListPane
from tui.text import content, line
from tui.widgets.row_list import Column, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.binding import BindingType
    from textual.content import Content
    from textual.timer import Timer

    from engine import Engine
    from engine.activity import LogRecord

LEVELS = (("debug", "all"), ("warning", "warnings and errors"), ("error", "errors"))
ORDER = ("debug", "info", "warning", "error", "critical")
TONES = {"debug": "muted", "warning": "warning", "error": "error", "critical": "error"}


class LogPane(ListPane[tuple["LogRecord", ...]]):
    """The activity log."""

    class Grown(Message):
        """Something was logged."""

    number = 8
    title = "Log"
    scope = "log"
    hints = ("log.follow", "log.level", "list.filter", "list.copy")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("log")]
    columns = (
        Column("Time", 8),
        Column("Level", 7),
        Column("Source", 9),
        Column("What happened"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.following = True
        self._level = 0
        self._unlisten: Callable[[], object] | None = None
        self._timer: Timer | None = None

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
        """Read soon, once for many records."""
        self.dirty = True
        if self.active and self._timer is None:
            rate = REDUCED_REPAINTS if self.host.settings.reduced_repaint else REPAINTS
            self._timer = self.set_timer(1 / rate, self._read)

    def _read(self) -> None:
        self._timer = None
        self.changed()

    async def fetch(self, engine: Engine) -> tuple[LogRecord, ...]:
        """The records that are kept."""
        return tuple(engine.log.history())

    # Showing ---------------------------------------------------------------------------------

    def rows(self, snapshot: tuple[LogRecord, ...]) -> Sequence[Row]:
        """One row a record of the chosen levels that has the filter's text."""
        now = self.host.now()
        text = self.filter_text.casefold()
        least = ORDER.index(LEVELS[self._level][0])
        return [
            Row(
                key,
                (clock(record.at, now)[-8:], record.level, record.source, record.text),
                ("muted", tone, "muted", tone),
            )
            for key, record in _keyed(snapshot)
            if _rank(record) >= least and text in f"{record.source} {record.text}".casefold()
            for tone in [TONES.get(record.level, "")]
        ]

    def show(self, snapshot: tuple[LogRecord, ...]) -> None:
        """Lay the records over what is there; following, go to the newest."""
        super().show(snapshot)
        if self.following:
            self.list.move_to(len(self.list.rows) - 1)

    def summary(self, snapshot: tuple[LogRecord, ...]) -> Content:
        """What is shown."""
        follow = "following" if self.following else "not following"
        text = f" · with “{self.filter_text}”" if self.filter_text else ""
        shown = f"{count(len(self.list.rows), 'record')} of {len(snapshot):,}"
        return line(f"{shown} · {LEVELS[self._level][1]}{text}{self.marked()} · {follow}", "dim")

    def nothing(self) -> str:
        """Nothing was logged."""
        return "Nothing was logged yet." if not self._level else f"No {LEVELS[self._level][1]}."

    def describe(self, row: Row) -> Content | None:
        """The whole text."""
        return content(row.cells[-1])

    def subject(self, row: Row) -> str:
        """The record as one line."""
        return " ".join(row.cells)

    def filter_changed(self) -> None:
        """The records are here already: only draw them."""
        self.redraw()

    # Keys ------------------------------------------------------------------------------------

    def do_follow(self) -> None:
        """Follow, or stop."""
        self.following = not self.following
        self.redraw()

    def do_level(self) -> None:
        """Show more or fewer levels."""
        self._level = (self._level + 1) % len(LEVELS)
        self.redraw()

    def do_up(self) -> None:
        """Going up stops following: what is read must not run away."""
        self.following = False
        super().do_up()
        self.redraw()

    def do_half_up(self) -> None:
        """The same by half a page."""
        self.following = False
        super().do_half_up()
        self.redraw()

    def do_top(self) -> None:
        """To the oldest, without following."""
        self.following = False
        super().do_top()
        self.redraw()

    def do_bottom(self) -> None:
        """To the newest, and follow."""
        self.following = True
        super().do_bottom()
        self.redraw()


def _rank(record: LogRecord) -> int:
    return ORDER.index(record.level) if record.level in ORDER else 1


def _keyed(records: Sequence[LogRecord]) -> list[tuple[str, LogRecord]]:
    """Records with keys that stay theirs while old ones are dropped: the time, and a number within it."""
    seen: dict[str, int] = {}
    keyed = []
    for record in records:
        at = record.at.isoformat()
        seen[at] = seen.get(at, 0) + 1
        keyed.append((f"{at} {seen[at]}", record))
    return keyed
