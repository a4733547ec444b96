"""Inbox: what waits for a human, with counts and the oldest age."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tui.keymap import bindings
from tui.panes.base import Pane, Shown

if TYPE_CHECKING:
    from engine.inbox import InboxItem
    from textual.binding import BindingType

    from engine import Engine


class InboxPane(Pane[tuple["InboxItem", ...]]):
    """Lists what waits; Enter goes there."""

    number = 1
    title = "Inbox"
    scope = "inbox"
    topics = frozenset({"folder", "job", "file", "notice"})
    hints = ("list.open", "list.refresh", "app.palette")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list")]

    async def fetch(self, engine: Engine) -> tuple[InboxItem, ...]:
        """What waits."""
        return tuple(await engine.inbox.items())

    def show(self, snapshot: tuple[InboxItem, ...]) -> None:
        """Draw it."""
        if not snapshot:
            self.shown(Shown.EMPTY, "Nothing waits for you.")
