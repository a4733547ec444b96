"""A process that a signal ends: told once, so that it leaves the database in order, and then gone.

SIGTERM asks for it, and SIGHUP comes when an SSH line drops. Afterwards the signal has its usual
effect, so that whoever sent it sees the process end by it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Ending:
    """Listens on the running loop for what ends the process; `on_end` hears of the first."""

    def __init__(self, on_end: Callable[[], object]) -> None:
        self.by: signal.Signals | None = None
        self._on_end = on_end
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if (
                signal.getsignal(number) is not signal.SIG_IGN
            ):  # nohup: the process shall outlive its terminal
                loop.add_signal_handler(number, self._ended, number)

    def _ended(self, number: signal.Signals) -> None:
        if self.by is None:
            self.by = number
            self._on_end()


def end_by(number: signal.Signals) -> int:
    """End this process by a signal that was held back; the exit status should it live on."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
