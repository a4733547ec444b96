"""The palette: every command by name, with its key beside it so that it need not be looked up again."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.fuzzy import Matcher
from textual.widgets import Input

from tui.actions import REGISTRY, Action
from tui.keymap import bindings
from tui.screens.dialog import Dialog
from tui.widgets.line_input import LineInput
from tui.widgets.row_list import Column, Row, RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType


class Palette(Dialog[str]):
    """Type a part of a command's name; Enter runs it. Answers with the action's id."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("ask")]

    def __init__(self, scope: str) -> None:
        super().__init__("Commands")
        self._actions = [
            action
            for action in REGISTRY.values()
            if action.palette and action.scope in {scope, "app", "list"}
        ]
        self._actions.sort(key=lambda action: (action.scope != scope, action.scope != "list"))
        self._input = LineInput("type a part of a command's name")
        self._rows = RowList((Column("Key", 5), Column("Command", 11), Column("What it does")))
        self._rows.can_focus = False

    def inside(self) -> ComposeResult:
        """The input above the commands."""
        yield self._input
        yield self._rows

    def on_mount(self) -> None:
        """All commands, until something is typed."""
        self.say("Enter runs · ↑ ↓ choose · Esc closes")
        self._input.focus()
        self._show("")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._show(event.value)

    def _show(self, typed: str) -> None:
        found = self._actions
        if typed.strip():
            matcher = Matcher(typed.strip())
            scored = [(matcher.match(f"{self._label(each)} {each.help}"), each) for each in self._actions]
            found = [action for score, action in sorted(scored, key=lambda each: -each[0]) if score > 0]
        self._rows.put([self._row(action) for action in found])
        self._rows.move_to(0)

    def _label(self, action: Action) -> str:
        pane = self.host.active_pane
        return action.label if pane is None else pane.label(action.id)

    def _row(self, action: Action) -> Row:
        cells = (self.host.keys.shown(action.id), self._label(action), action.help)
        return Row(action.id, cells, ("muted", "", "muted"))

    @on(Input.Submitted)
    def _run(self) -> None:
        row = self._rows.current
        self.dismiss(row.key if row is not None else None)

    def do_cancel(self) -> None:
        """Close."""
        self.dismiss(None)

    def do_down(self) -> None:
        """Next command."""
        self._rows.move(1)

    def do_up(self) -> None:
        """Command before."""
        self._rows.move(-1)

    def do_complete(self) -> None:
        """Tab goes on to the next command."""
        self._rows.move(1)
