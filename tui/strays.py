"""What libraries write to standard error by themselves, while the console has the screen, goes to the log.

Textual takes what Python prints. A library in another language writes past it: a warning of onnxruntime, a
panic of a tokenizer with a piece of a note in it. That would stand in the middle of the screen, and steer
the terminal.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STDERR = 2
LONGEST = 1_000
"""Bytes of a line that are logged."""

_log = logging.getLogger("noctuary.library")


@contextmanager
def kept_off_the_screen() -> Iterator[None]:
    """Let standard error lead into the log, if it is a terminal; the screen is drawn on standard output."""
    if not os.isatty(STDERR):
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)  # a library must not wait for us while it holds what we need
    terminal = os.dup(STDERR)
    os.dup2(writing, STDERR)
    os.close(writing)
    threading.Thread(target=_tell, args=(reading,), name="strays", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(terminal, STDERR)
        os.close(terminal)


def _tell(reading: int) -> None:
    """Log each line, until nobody has the other end any more."""
    with open(reading, "rb") as lines:
        while line := lines.readline(LONGEST):
            # Without the log it would come back here.
            if line.strip() and _log.hasHandlers():
                _log.warning("%s", line.decode(errors="replace").rstrip())
