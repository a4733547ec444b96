"""Inbox: what waits for a human, with counts and the oldest age."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from engine.text.amounts import count
from tui.ages import ago
from tui.panes.list_pane import ListPane
from tui.text import line
from tui.widgets.row_list import Column, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.content import Content

    from engine import Engine
    from engine.inbox import InboxItem


class InboxPane(ListPane[tuple["InboxItem", ...]]):
    """Lists what waits; Enter goes there."""

    number = 1
    title = "Inbox"
    scope = "inbox"
    topics = frozenset(
        {"folder", "job", "file", "embedding", "drift", "service", "eval_run", "lesson", "cluster"}
    )
    hints = ("list.open", "list.refresh", "app.add-folder", "app.palette")
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Count", 7, right=True),
        Column("What"),
        Column("Oldest", 10, right=True),
        Column("Pane", 9),
    )

    async def fetch(self, engine: Engine) -> tuple[InboxItem, ...]:
        """What waits."""
        return tuple(await engine.inbox.items())

    def rows(self, snapshot: tuple[InboxItem, ...]) -> Sequence[Row]:
        """One row a kind."""
        now = self.host.now()
        text = self.filter_text.casefold()
        return [
            Row(
                item.kind,
                (f"{item.count:,}", item.title, ago(item.oldest, now) or "-", self._pane_name(item)),
                ("", "", "muted", "muted"),
            )
            for item in snapshot
            if text in item.title.casefold()
        ]

    def _pane_name(self, item: InboxItem) -> str:
        if item.pane == "eval":
            return f"{self.host.keys.shown('app.eval')} Eval"
        return next(
            (f"{pane.number} {pane.title}" for pane in self.host.panes if pane.scope == item.pane), ""
        )

    def status_read(self) -> None:
        """The sentence for an empty inbox counts the notes."""
        self.redraw()

    def filter_changed(self) -> None:
        """The items are here already: only draw them."""
        self.redraw()

    def summary(self, snapshot: tuple[InboxItem, ...]) -> Content:
        """How much waits in all."""
        waiting = sum(item.count for item in snapshot)
        return line(f"{count(waiting, 'thing')} waiting for you" if waiting else "", "dim")

    def nothing(self) -> str:
        """Nothing waits."""
        keys = self.host.keys
        status = self.host.status
        index = status.index if status is not None else None
        held = f" {count(index.files, 'note')} in the index." if index is not None else ""
        return f"Nothing waits for you.{held}\n{keys.shown('app.pane-2')} searches them."

    def subject(self, row: Row) -> str:
        """What waits, and how often."""
        return f"{row.cells[1]}: {row.cells[0]}"

    def do_open(self) -> None:
        """Go where the item is dealt with."""
        row = self.list.current
        item = next((each for each in self.snapshot or () if row is not None and each.kind == row.key), None)
        if item is not None:
            self.host.go(item.pane, item.kind)
