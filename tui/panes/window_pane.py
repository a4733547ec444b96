"""A pane whose list is a window of rows, cut by SQL: more than a screen ever needs to hold.

Moving past an end of the window moves it by half its size, so that rows on the screen stay there.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

from textual import on
from textual.message import Message

from engine.errors import NoctuaryError
from tui.messages import Flash
from tui.panes.list_pane import ListPane
from tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine import Engine

S = TypeVar("S")

WINDOW = 400
"""Rows held at a time: eight tall screens, read in a few milliseconds."""
STEP = WINDOW // 2
LAST = -1
"""Stands for the offset of the last window, which only the engine can tell."""


class WindowPane(ListPane[S]):
    """Moves the window with the cursor; subclasses say where a snapshot's window stands."""

    class Everything(Message):
        """All rows that match were read: by their keys what `y` copies of each."""

        def __init__(self, subjects: Mapping[str, str]) -> None:
            super().__init__()
            self.subjects = subjects

    def __init__(self) -> None:
        super().__init__()
        self.first = 0
        """Offset of the window that is asked for, or `LAST`."""
        self._owed = 0

    @abstractmethod
    def window(self, snapshot: S) -> tuple[int, bool]:
        """The offset of the snapshot's window, and whether rows follow it."""

    @abstractmethod
    async def everything(self, engine: Engine) -> Mapping[str, str]:
        """The keys of all rows that match what is asked for now, each with what is copied of it."""

    def whole(self, snapshot: S) -> bool:
        """Whether the window holds all that matches."""
        return self.window(snapshot) == (0, False)

    def show(self, snapshot: S) -> None:
        """The rows, and the cursor where the key that moved the window wanted it."""
        self.first, _ = self.window(snapshot)
        super().show(snapshot)
        self.list.move_to(self.list.cursor + self._owed)
        self._owed = 0

    def filter_changed(self) -> None:
        """Another question begins at its first row."""
        self.first = 0
        self.request(restart=True)

    def from_the_top(self) -> None:
        """Ask anew, and go to the first row of all."""
        self._turn(0, -WINDOW)

    @on(RowList.Edge)
    def _edge(self, message: RowList.Edge) -> None:
        if self.snapshot is None:
            return
        offset, more = self.window(self.snapshot)
        if message.by > 0 and more:
            self._turn(offset + STEP, message.by)
        elif message.by < 0 and offset:
            self._turn(max(offset - STEP, 0), message.by)

    def _turn(self, offset: int, owed: int) -> None:
        """Move the window, and then the cursor by what is still owed to the key."""
        self.first, self._owed = offset, owed
        self.request(restart=True)

    def do_top(self) -> None:
        """To the first row of all."""
        super().do_top()
        if self.first:
            self.from_the_top()

    def do_bottom(self) -> None:
        """To the last row of all."""
        super().do_bottom()
        if self.snapshot is not None and self.window(self.snapshot)[1]:
            self._turn(LAST, WINDOW)

    def do_mark_all(self) -> None:
        """Mark all rows that match, also those outside the window, or none."""
        engine = self.host.engine
        if self.snapshot is None or engine is None or self.whole(self.snapshot):
            super().do_mark_all()
        else:
            name = f"{self.scope}.mark-all"
            self.host.spawn(self._read_all(engine), name, f"read all {self.scope}")

    async def _read_all(self, engine: Engine) -> None:
        try:
            subjects = await self.everything(engine)
        except NoctuaryError as error:
            self.post_message(Flash(f"{error.title}: {error}", error=True))
        else:
            self.post_message(self.Everything(subjects))

    @on(Everything)
    def _everything_read(self, message: Everything) -> None:
        message.stop()
        self.mark_all(message.subjects)
