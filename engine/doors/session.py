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

from engine.doors import output
from engine.settings import Settings

if TYPE_CHECKING:
    from engine import Engine

Work = Callable[["Engine"], Awaitable[int]]

SLOW_SECONDS = 1.0
"""Opening the database takes a tenth of this when its server runs; only a longer wait is explained."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def run(work: Work, *, application: str) -> int:
    """Load the settings, open the engine, do the work, close, and give the exit status."""
    settings = Settings.load()
    ended_by: list[signal.Signals] = []
    try:
        return asyncio.run(_guarded(work, settings, application, ended_by))
    except asyncio.CancelledError:
        if not ended_by:
            raise
    signal.signal(ended_by[0], signal.SIG_DFL)
    os.kill(os.getpid(), ended_by[0])
    return 128 + ended_by[0]


async def _guarded(work: Work, settings: Settings, application: str, ended_by: list[signal.Signals]) -> int:
    task = asyncio.current_task()
    if task is None:  # pragma: no cover - a coroutine run by asyncio.run always is a task
        raise RuntimeError("not inside a task")

    def end(number: signal.Signals) -> None:
        ended_by.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, end, number)
    return await _opened(work, settings, application)


async def _opened(work: Work, settings: Settings, application: str) -> int:
    from engine import Engine

    waiting = _Waiting()
    try:
        engine = await Engine.open(settings, application=application, on_state=waiting.state)
    finally:
        waiting.over()
    try:
        return await work(engine)
    finally:
        await engine.close()


class _Waiting:
    """Says what the engine is doing while it opens, once that takes long and somebody watches."""

    def __init__(self) -> None:
        self._sentence = ""
        self._slow = False
        self._timer: asyncio.TimerHandle | None = None
        if sys.stderr.isatty():
            self._timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._explain)

    def state(self, sentence: str) -> None:
        self._sentence = sentence
        if self._slow:
            output.note(f"{sentence} …")

    def over(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _explain(self) -> None:
        self._slow = True
        self.state(self._sentence or "opening the database")
