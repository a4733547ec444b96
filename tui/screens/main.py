"""The screen with the panes: tabs above, one pane, the status line and the hints below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.screen import Screen
from textual.widgets import ContentSwitcher

from tui.actions import REGISTRY, Actor
from tui.keymap import bindings
from tui.messages import Flash
from tui.panes import PANES
from tui.screens.add_folder import AddFolder
from tui.screens.dialog import TextDialog
from tui.screens.eval import EvalScreen
from tui.screens.folders import FoldersScreen
from tui.screens.help import HelpDialog
from tui.screens.palette import Palette
from tui.text import content
from tui.themes import keep, next_theme
from tui.widgets.bars import HintBar, TabBar
from tui.widgets.status_line import StatusLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine.errors import NoctuaryError
    from engine.notes.model import Folder
    from tui.app import NoctuaryApp
    from tui.panes.base import Pane


WIDE, TALL = 100, 30
"""Columns and lines from which a pane shows previews and details beside or below its list."""


class MainScreen(Actor, Screen[None]):
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
        self._minute = 0

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
        if pane is not self.active_pane:
            self.active_pane.leave()
        self.active_pane = pane
        self._switcher.current = pane.id
        self._tabs.show(self.panes, pane)
        self.show_hints()
        pane.activate()

    def go(self, scope: str, kind: str = "") -> None:
        """Bring up the pane of this name, at what `kind` names."""
        if scope == EvalScreen.scope:
            self.do_eval()
        for pane in self.panes:
            if pane.scope == scope:
                pane.arrive(kind)
                self.show_pane(pane)

    def show_hints(self) -> None:
        """Say the keys of the pane."""
        keys, pane = self.host.keys, self.active_pane
        self._hints.show([(keys.shown(each), pane.label(each)) for each in (*pane.hints, "app.help")])

    def show_status(self) -> None:
        """Bring the status line up to date; it repaints only what differs."""
        self._status.show(self.host.health, self.host.now())

    def on_resize(self, event: events.Resize) -> None:
        """Below 100 columns previews fold away, and the status line says less."""
        self.set_class(event.size.width >= WIDE, "-wide")
        self.set_class(event.size.height >= TALL, "-tall")
        self.call_after_refresh(self.show_status)

    def flash(self, text: str, *, error: bool = False) -> None:
        """One line in place of the hints, until the next key."""
        self._hints.flash(text, error=error)

    def show_error(self, error: NoctuaryError) -> None:
        """An error that nothing goes on without."""
        text = content(error.message) + content(f"\n\n{error.remedy}" if error.remedy else "")
        self.app.push_screen(TextDialog(error.title, text))

    def show_errors(self, errors: Sequence[NoctuaryError]) -> None:
        """Errors that something goes on without, one below the other."""
        text = content("\n\n".join(str(error) for error in errors))
        self.app.push_screen(TextDialog(errors[0].title, text))

    def engine_ready(self) -> None:
        """The engine is open: the pane that is up reads, the others when they come up."""
        self.show_status()
        self.active_pane.activate()

    def on_key(self, _event: events.Key) -> None:
        """Any key takes a flash away, and ages are worked out anew when a minute has passed."""
        self._hints.calm()
        minute = int(self.host.now().timestamp() // 60)
        if minute != self._minute:
            self._minute = minute
            self.active_pane.redraw()

    # Actions ---------------------------------------------------------------------------------

    def refused(self, reason: str) -> None:
        """An action cannot be used now."""
        self.flash(reason)

    def unavailable(self, action: str) -> str:
        """What needs the engine has to wait for it."""
        if action in {"app.add-folder", "app.folders"} and self.host.engine is None:
            return "The database is not open yet"
        return ""

    def run_action_id(self, action: str | None) -> None:
        """Run what the palette answered with, where it belongs."""
        if action is None:
            return
        if REGISTRY[action].scope == "app":
            self.action_act(action)
        else:
            self.active_pane.action_act(action)

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

    def do_pane_1(self) -> None:
        """Go to pane 1."""
        self._go_to_number(1)

    def do_pane_2(self) -> None:
        """Go to pane 2."""
        self._go_to_number(2)

    def do_pane_3(self) -> None:
        """Go to pane 3."""
        self._go_to_number(3)

    def do_pane_4(self) -> None:
        """Go to pane 4."""
        self._go_to_number(4)

    def do_pane_5(self) -> None:
        """Go to pane 5."""
        self._go_to_number(5)

    def do_pane_6(self) -> None:
        """Go to pane 6."""
        self._go_to_number(6)

    def do_pane_7(self) -> None:
        """Go to pane 7."""
        self._go_to_number(7)

    def do_pane_8(self) -> None:
        """Go to pane 8."""
        self._go_to_number(8)

    def do_help(self) -> None:
        """All keys."""
        self.app.push_screen(HelpDialog(self.host.keys, self.active_pane.scope))

    def do_palette(self) -> None:
        """Every command by name."""
        self.app.push_screen(Palette(self.active_pane.scope), self.run_action_id)

    def do_add_folder(self) -> None:
        """Ask for a folder."""
        self.ask_for_folder("")

    def ask_for_folder(self, why: str) -> None:
        """Ask for a folder and say what was added."""
        self.app.push_screen(AddFolder(why), self._folder_added)

    def _folder_added(self, folder: Folder | None) -> None:
        if folder is not None:
            self.flash(f"Added {folder.path}: its notes are found as they are read")

    def do_folders(self) -> None:
        """The folders."""
        self.app.push_screen(FoldersScreen())

    def do_eval(self) -> None:
        """The Eval view; a question that is chosen there is searched."""
        self.app.push_screen(EvalScreen(), lambda question: self.go("search", question) if question else None)

    def do_theme(self) -> None:
        """The next theme, also for the next session."""
        name = next_theme(self.host)
        self.flash(f"Theme: {name}")
        self.host.spawn(self._keep_theme(name), "theme", "keep the theme")

    async def _keep_theme(self, name: str) -> None:
        trouble = await keep(self.host.settings.paths, name)
        if trouble:
            self.host.post_message(Flash(f"Theme: {name}; {trouble}", error=True))
