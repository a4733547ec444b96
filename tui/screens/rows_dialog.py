"""A dialog that is about a list: the keys that move in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from tui.screens.dialog import Dialog

if TYPE_CHECKING:
    from tui.widgets.row_list import RowList

R = TypeVar("R")


class RowsDialog(Dialog[R]):
    """Moves the cursor of its rows."""

    def __init__(self, title: str, rows: RowList) -> None:
        super().__init__(title)
        self._rows = rows

    def do_down(self) -> None:
        """Next row."""
        self._rows.move(1)

    def do_up(self) -> None:
        """Row before."""
        self._rows.move(-1)

    def do_half_down(self) -> None:
        """Half a page down."""
        self._rows.move(max(self._rows.page // 2, 1))

    def do_half_up(self) -> None:
        """Half a page up."""
        self._rows.move(-max(self._rows.page // 2, 1))

    def do_top(self) -> None:
        """First row."""
        self._rows.move_to(0)

    def do_bottom(self) -> None:
        """Last row."""
        self._rows.move_to(len(self._rows.rows) - 1)
