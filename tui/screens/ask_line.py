"""Asking for one line of text, and doing with it what it is for: what fails is told, and stays typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual import on
from textual.message import Message
from textual.widgets import Input

from engine.errors import NoctuaryError
from tui.keymap import bindings
from tui.screens.dialog import Dialog
from tui.text import content
from tui.widgets.label import Label
from tui.widgets.line_input import LineInput
from tui.widgets.turn_rows import TurnRows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine import Engine
    from tui.widgets.turn_rows import Indented

R = TypeVar("R")


class AskLine(Dialog[R]):
    """A line that is typed; Enter gives it to `act`, whose answer is the dialog's.

    `about` stands above the line, and `lines`, which scroll, above that. `act` raises a NoctuaryError for
    what cannot be done.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("ask")]

    class Done(Message):
        """The engine answered, or says why not."""

        def __init__(self, answer: object, error: NoctuaryError | None = None) -> None:
            super().__init__()
            self.answer = answer
            self.error = error

    def __init__(
        self,
        title: str,
        act: Callable[[Engine, str], Awaitable[R]],
        *,
        enter: str,
        value: str = "",
        placeholder: str = "",
        about: str = "",
        lines: Sequence[Indented] = (),
    ) -> None:
        super().__init__(title)
        self._act = act
        self._enter = enter
        self._value = value
        self._about = Label(content(about, "dim"), classes="about")
        self._about.display = bool(about)
        self._turns = TurnRows(lines)
        self._turns.display = bool(lines)
        self._turns.can_focus = False
        self._input = LineInput(placeholder)

    def inside(self) -> ComposeResult:
        """What it is about, and the line."""
        yield self._turns
        yield self._about
        yield self._input

    def on_mount(self) -> None:
        """Begin at the end of what is there already."""
        self._input.value = self._value
        self._input.cursor_position = len(self._input.value)
        self._input.focus()
        self._hint()

    def _hint(self) -> None:
        scroll = " · ↑ ↓ scroll" if self._turns.display else ""
        self.say(f"Enter {self._enter}{scroll} · Esc cancels")

    @on(Input.Changed)
    def _typed(self) -> None:
        self._hint()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        engine, typed = self.host.engine, event.value.strip()
        if not typed:
            self.say("Type it first")
        elif engine is None:
            self.say("The database is not open yet")
        else:
            self.host.spawn(self._do(engine, typed), "ask-line", "do what was asked")

    async def _do(self, engine: Engine, typed: str) -> None:
        try:
            answer = await self._act(engine, typed)
        except NoctuaryError as error:
            self.post_message(self.Done(None, error))
        else:
            self.post_message(self.Done(answer))

    @on(Done)
    def _done(self, message: Done) -> None:
        if message.error is not None:
            self.say(str(message.error), error=True)
        else:
            self.dismiss(cast("R", message.answer))

    def do_cancel(self) -> None:
        """Close without doing anything."""
        self.dismiss(None)

    def do_down(self) -> None:
        """Scroll what it is about down."""
        self._turns.scroll_by(1)

    def do_up(self) -> None:
        """Scroll it up."""
        self._turns.scroll_by(-1)

    def do_complete(self) -> None:
        """Nothing is completed here, and the focus stays in the line."""
        self._hint()
