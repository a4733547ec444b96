"""The terminal as Textual drives it on Linux and macOS, made safe for one that goes away."""

from __future__ import annotations

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from tui.paste import Parser

# The driver makes its parser itself, by this name; Textual is pinned, and a test on a real terminal holds it.
setattr(linux_driver, "XTermParser", Parser)  # noqa: B010  a type checker need not believe it


class Driver(LinuxDriver):
    """Drops what nobody can see any more, where Textual would wait for ever for room in its queue."""

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
        try:
            super().run_input_thread()
        except OSError:
            self._app.call_later(self._app.exit)
