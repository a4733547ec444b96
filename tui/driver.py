"""The terminal as Textual drives it on Linux and macOS, made safe for one that goes away or is flooded.

Textual hands each key to the event loop and goes on reading. The loop's own pipe fills with so many, and
the signal that should end the program finds no room in it (`signal.set_wakeup_fd`) and is lost. So here
a key is handed over when the one before it was answered; what is not read yet waits in the terminal. So
letters that are typed ahead reach the input that the key before them opens.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from concurrent import futures
from typing import TYPE_CHECKING, Any

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key

import tui.painting  # noqa: F401  (guards every row from now on)
from tui.paste import Parser

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

# The driver makes its parser itself, by this name; Textual is pinned, and a test on a real terminal holds it.
setattr(linux_driver, "XTermParser", Parser)  # noqa: B010  a type checker need not believe it

MOST_REPEATS = 200
"""Times one key counts without a pause: more than anybody means, and done in a fraction of a second."""

PAUSE_SECONDS = 0.01
"""Between two keys: a key that is held down comes slower than this, a flood faster."""

TURNS = 25
"""Turns of the loop in which a key goes down to the widget with the focus, up again through all above it,
and the focus moves; more than twice what was counted. An idle loop makes them in a millisecond."""

LOOK_SECONDS = 0.05
"""Between two looks whether the screen is being left, which the loop waits for while we wait for it."""


class Repeats:
    """Counts how often one key comes without a pause."""

    def __init__(self) -> None:
        self._key = ""
        self._times = 0

    def too_many(self, key: str, *, pause: float) -> bool:
        """Whether this is one too many; `pause` is the time since the key before it."""
        again = key == self._key and pause < PAUSE_SECONDS
        self._key, self._times = key, self._times + 1 if again else 1
        return self._times > MOST_REPEATS


class Driver(LinuxDriver):
    """Drops what nobody can see any more, where Textual would wait for ever for room in its queue.

    It writes to standard output: standard error is where libraries write by themselves (`tui.strays`).
    """

    _handed_over = 0.0

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._file = sys.__stdout__

    @property
    def _writes(self) -> bool:
        return self._writer_thread is not None and self._writer_thread.is_alive()

    def write(self, data: str) -> None:
        """Write, as long as there is a terminal."""
        if self._writes:
            super().write(data)

    def close(self) -> None:
        """Let the writer end, unless it fell."""
        if self._writes:
            super().close()

    def run_input_thread(self) -> None:
        """Read keys until the app ends; a terminal that went away ends it without a traceback."""
        self._repeats = Repeats()
        try:
            super().run_input_thread()
        except OSError:
            self._app.call_later(self._app.exit)

    def send_message(self, message: Message) -> None:
        """Hand over what was read, and wait until it was answered, unless the screen is being left."""
        if threading.current_thread() is not self._key_thread:
            super().send_message(message)
            return
        pause = time.monotonic() - self._handed_over  # without the waiting, which is ours
        if isinstance(message, Key) and self._repeats.too_many(message.key, pause=pause):
            return
        if not self.exit_event.is_set():
            answered = asyncio.run_coroutine_threadsafe(self._hand_over(message), self._loop)
            while not self.exit_event.is_set() and not futures.wait([answered], LOOK_SECONDS).done:
                pass
        self._handed_over = time.monotonic()

    async def _hand_over(self, message: Message) -> None:
        await self._app._post_message(message)  # noqa: SLF001  (as Textual's own driver does)
        for _ in range(TURNS if isinstance(message, Key) else 0):
            await asyncio.sleep(0)
