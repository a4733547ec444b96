"""What stands above the panes: a text to read, a question to confirm, and the base of other dialogs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen

from tui.actions import Actor
from tui.keymap import bindings, shown
from tui.text import content, line
from tui.widgets.label import Label

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.content import Content
    from textual.widget import Widget

    from tui.app import NoctuaryApp

R = TypeVar("R")


class Dialog(Actor, ModalScreen[R], Generic[R]):
    """A box in the middle: a title, the content, and a line that says the keys."""

    scope: ClassVar[str] = "dialog"

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._keys = Label(classes="keys", grows=True)

    @property
    def host(self) -> NoctuaryApp:
        """The application, typed."""
        return cast("NoctuaryApp", self.app)

    def compose(self) -> ComposeResult:
        """The box."""
        with Vertical(classes="box"):
            yield Label(line(self._title), classes="title")
            yield from self.inside()
            yield self._keys

    def inside(self) -> ComposeResult:
        """What the dialog is about."""
        yield from ()

    def say(self, text: str, *, error: bool = False) -> None:
        """Put a sentence where the keys are told."""
        self._keys.put(line(("✗ " if error else "") + text, "$text-error" if error else ""))

    def refused(self, reason: str) -> None:
        """An action cannot be used now."""
        self.say(reason)

    def do_close(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)


class ReadDialog(Dialog[None]):
    """Something to read, which scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog")]

    def __init__(self, title: str, scroll: Widget) -> None:
        super().__init__(title)
        self._scroll = scroll

    def inside(self) -> ComposeResult:
        """What is read."""
        yield self._scroll

    def on_mount(self) -> None:
        """Take the keys."""
        keys = self.host.keys
        self.say(
            f"{keys.shown('dialog.close')} closes · {keys.shown('dialog.down')} "
            f"{keys.shown('dialog.up')} scroll"
        )
        self._scroll.focus()

    def _by(self, rows: int) -> None:
        self._scroll.scroll_relative(y=rows, animate=False)

    def do_down(self) -> None:
        """One line down."""
        self._by(1)

    def do_up(self) -> None:
        """One line up."""
        self._by(-1)

    def do_half_down(self) -> None:
        """Half a page down."""
        self._by(max(self._scroll.size.height // 2, 1))

    def do_half_up(self) -> None:
        """Half a page up."""
        self._by(-max(self._scroll.size.height // 2, 1))

    def do_top(self) -> None:
        """To the top."""
        self._scroll.scroll_home(animate=False)

    def do_bottom(self) -> None:
        """To the bottom."""
        self._scroll.scroll_end(animate=False)


class TextDialog(ReadDialog):
    """A text to read, of any length."""

    def __init__(self, title: str, text: Content) -> None:
        self._text = Label(text, grows=True)
        super().__init__(title, VerticalScroll(self._text))


class Confirm(Dialog[bool]):
    """A question. A key that asks never confirms; every way out but one is a no."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("confirm")]

    def __init__(self, question: str, asked_by: str, *, detail: str = "") -> None:
        super().__init__(question)
        self._asked_by = asked_by
        self._detail = Label(content(detail))

    def inside(self) -> ComposeResult:
        """What will happen."""
        yield self._detail

    def on_mount(self) -> None:
        """Say the keys."""
        self.say(f"{self._ways('confirm.yes')} does it · {self._ways('confirm.no')} does not")

    def _asking(self) -> set[str]:
        # Enter asks from the palette, whatever it is bound to.
        return {*self.host.keys.keys(self._asked_by), "enter"}

    def _ways(self, action: str) -> str:
        usable = [key for key in self.host.keys.keys(action) if key not in self._asking()]
        return shown(usable[0]) if usable else "no key"

    def on_key(self, event: events.Key) -> None:
        """Swallow the keys that asked: pressed twice in haste they must not confirm."""
        if event.key in self._asking():
            event.stop()
            self.on_mount()

    def do_yes(self) -> None:
        """Confirmed."""
        self.dismiss(result=True)

    def do_no(self) -> None:
        """Refused."""
        self.dismiss(result=False)
