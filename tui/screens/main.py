"""The screen with the panes: tabs above, one pane, the status line and the hints below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.screen import Screen
from textual.widgets import ContentSwitcher

from tui.keymap import bindings
from tui.panes import PANES
from tui.widgets.bars import HintBar, StatusLine, TabBar

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine.errors import NoctuaryError
    from tui.app import NoctuaryApp
    from tui.panes.base import Pane


class MainScreen(Screen[None]):
    """Holds the panes and answers the keys that work everywhere."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app")]

    def __init__(self) -> None:
        super().__init__()
        self.panes: tuple[Pane[Any], ...] = tuple(pane() for pane in PANES)
        self.active_pane: Pane[Any] = self.panes[0]
        self._tabs = TabBar()
        self._switcher = ContentSwitcher(*self.panes, initial=self.active_pane.id)
        self._status = StatusLine()
        self._hints = HintBar()

    @property
    def host(self) -> NoctuaryApp:
        """The application, typed."""
        return cast("NoctuaryApp", self.app)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._tabs
        yield self._switcher
        yield self._status
        yield self._hints

    def on_mount(self) -> None:
        """Show the first pane."""
        self.show_pane(self.active_pane)
        self.show_status()

    def show_pane(self, pane: Pane[Any]) -> None:
        """Bring a pane up."""
        self.active_pane = pane
        self._switcher.current = pane.id
        self._tabs.show(self.panes, pane)
        self.show_hints()
        pane.activate()

    def go(self, scope: str) -> Pane[Any] | None:
        """Bring up the pane of this name, if there is one."""
        for pane in self.panes:
            if pane.scope == scope:
                self.show_pane(pane)
                return pane
        return None

    def show_hints(self) -> None:
        """Say the keys of the pane."""
        keys = self.host.keys
        self._hints.show([(keys.shown(each), each) for each in (*self.active_pane.hints, "app.help")])

    def show_status(self) -> None:
        """Bring the status line up to date; it repaints only what differs."""
        self._status.show(self.host)

    def flash(self, text: str, *, error: bool = False) -> None:
        """One line in place of the hints, until the next key."""
        self._hints.flash(text, error=error)

    def show_error(self, error: NoctuaryError) -> None:
        """An error that nothing goes on without."""
        self.flash(f"{error.title}: {error}", error=True)

    def engine_ready(self) -> None:
        """The engine is open: the pane that is up reads, the others when they come up."""
        self.active_pane.activate()

    def on_key(self, _event: events.Key) -> None:
        """Any key takes a flash away."""
        self._hints.calm()

    # Actions ---------------------------------------------------------------------------------

    def action_act(self, action: str) -> None:
        """Run an action that works everywhere."""
        verb = action.removeprefix("app.")
        if verb.startswith("pane-"):
            self._go_to_number(int(verb.removeprefix("pane-")))
        else:
            getattr(self, f"do_{verb.replace('-', '_')}")()

    def _go_to_number(self, number: int) -> None:
        for pane in self.panes:
            if pane.number == number:
                self.show_pane(pane)
                return
        self.flash("Panes: " + " · ".join(f"{pane.number} {pane.title}" for pane in self.panes))

    def do_next_pane(self) -> None:
        """The next pane, after the last the first."""
        self._step(1)

    def do_previous_pane(self) -> None:
        """The pane before."""
        self._step(-1)

    def _step(self, by: int) -> None:
        here = self.panes.index(self.active_pane)
        self.show_pane(self.panes[(here + by) % len(self.panes)])

    def do_quit(self) -> None:
        """Leave."""
        self.app.exit()
