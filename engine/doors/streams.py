"""The last line of defence of the commands: whatever is written to a standard stream, text is only text.

What a command says is made visible where it is said (`engine.doors.output`). This stands under it, for all
that is not said there: usage errors of click, help, warnings, records of loggers nobody listens to, and what
the interpreter itself complains of.
"""

from __future__ import annotations

import io
import re
import sys
from typing import TYPE_CHECKING, TextIO, cast

from engine.text.safe import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DRAWING = re.compile(r"(\r|\x1b\[\?25[hl])")
"""What click's progress bar says to a terminal: back to the first column; hide the cursor, show it."""


class Guarded:
    """A stream over another one: every text is made visible, also for a reader by pipe.

    It has no `buffer`, by which bytes would go around it.
    """

    def __init__(self, stream: TextIO, shown: Callable[[str], str] = visible) -> None:
        self._stream = stream
        self._shown = shown

    def write(self, text: str) -> int:
        """Write what the text looks like; the number of characters taken."""
        self._stream.write(self._shown(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """See `io.IOBase.flush`."""
        self._stream.flush()

    def isatty(self) -> bool:
        """See `io.IOBase.isatty`."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """See `io.IOBase.fileno`."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """See `io.IOBase.writable`."""
        return True

    @property
    def closed(self) -> bool:
        """Whether the stream under it is closed."""
        return self._stream.closed

    @property
    def encoding(self) -> str:
        """That of the stream under it."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:
        """That of the stream under it."""
        return self._stream.errors

    def for_drawing(self) -> Guarded:
        """The same for a progress bar, which may also go back to the first column and hide the cursor."""
        return Guarded(self._stream, _drawn)


def guard() -> None:
    """Put a guard before both standard streams, once; what their encoding lacks is spelt."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, Guarded(stream))


def drawing() -> TextIO:
    """Standard error for a progress bar."""
    stream: object = sys.stderr
    return cast("TextIO", stream.for_drawing()) if isinstance(stream, Guarded) else sys.stderr


def _drawn(text: str) -> str:
    parts = DRAWING.split(text)
    return "".join(part if at % 2 else visible(part) for at, part in enumerate(parts))
