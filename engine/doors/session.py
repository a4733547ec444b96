"""One run of a command on an open engine: open, work, close, also when a signal ends it.

A signal that ends the process (SIGTERM, or SIGHUP when an SSH line drops) cancels the work, lets the
engine leave the database in order, and then has its usual effect.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from engine.doors import exits, output
from engine.ending import Ending, end_by
from engine.settings import Settings

if TYPE_CHECKING:
    from engine import Engine

Work = Callable[["Engine"], Awaitable[int]]

HASTE_SECONDS = 1.0
"""Within these a second Ctrl+C is the first one, pressed twice."""

SLOW_SECONDS = 1.0
"""Opening the database takes a tenth of this when its server runs; only a longer wait is explained."""


def run(work: Work, *, application: str) -> int:
    """Load the settings, open the engine, do the work, close, and give the exit status."""
    settings = Settings.load()
    return endable(lambda: _opened(work, settings, application))


def endable(work: Callable[[], Awaitable[int]]) -> int:
    """Do work that a signal may end, and give the exit status.

    Raises:
        KeyboardInterrupt: Ctrl+C ended it; all is in order.
    """
    endings: list[Ending] = []
    interrupts: list[_Interrupts] = []
    try:
        return asyncio.run(_guarded(work, endings, interrupts))
    except asyncio.CancelledError:
        by = endings[0].by if endings else None
        if by is None and interrupts and interrupts[0].came:
            raise KeyboardInterrupt from None
        if by is None:
            raise
    return end_by(by)


async def _guarded(
    work: Callable[[], Awaitable[int]], endings: list[Ending], interrupts: list[_Interrupts]
) -> int:
    task = asyncio.current_task()
    if task is None:  # pragma: no cover - a coroutine run by asyncio.run always is a task
        raise RuntimeError("not inside a task")
    endings.append(Ending(task.cancel))
    interrupts.append(_Interrupts(task.cancel))
    return await work()


class _Interrupts:
    """Ctrl+C: the first ends the work in order. asyncio's own second one breaks off what closes the engine,
    which then never ends; here a key pressed twice in haste is one, and who insists is let go at once: what
    was open is as after a crash, which the next start mends.
    """

    def __init__(self, on_first: Callable[[], object]) -> None:
        self.came = False
        self._on_first = on_first
        self._loop = asyncio.get_running_loop()
        self._first = 0.0
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # of a job in the background
            self._loop.add_signal_handler(signal.SIGINT, self._interrupted)

    def _interrupted(self) -> None:
        if not self.came:
            self.came, self._first = True, self._loop.time()
            self._on_first()
        elif self._loop.time() - self._first > HASTE_SECONDS:
            os._exit(exits.INTERRUPTED)


async def _opened(work: Work, settings: Settings, application: str) -> int:
    from engine import Engine

    waiting = Waiting()
    waiting.state("opening the database")
    try:
        engine = await Engine.open(settings, application=application, on_state=waiting.state)
    finally:
        waiting.over()
    try:
        return await work(engine)
    finally:
        await engine.close()


class Waiting:
    """Says what the engine is doing while it opens, once that takes long and somebody watches."""

    def __init__(self) -> None:
        self._sentence = ""
        self._slow = False
        self._timer: asyncio.TimerHandle | None = None
        if sys.stderr.isatty():
            self._timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._explain)

    def state(self, sentence: str) -> None:
        """What is waited for now; empty when nothing is."""
        self._sentence = sentence
        if self._slow and sentence:
            output.note(f"{sentence} …")

    def over(self) -> None:
        """It is open, or will not be."""
        if self._timer:
            self._timer.cancel()

    def _explain(self) -> None:
        self._slow = True
        self.state(self._sentence)
