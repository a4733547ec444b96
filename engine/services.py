"""Background work that outlives its faults: each service is started again, later and later, and said so."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.errors import DatabaseUnavailable, NoctuaryError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds until a service that fell is started again: doubled at each fall, up to the longest."""

WELL_AFTER = 5.0
"""Seconds a service that was started again has to run until its fault is forgotten: one that falls again
and again shall not seem well in between."""

_log = logging.getLogger("noctuary.service")


class Services:
    """The background tasks of one process."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again = asyncio.Event()
        self.faults: dict[str, str] = {}
        self.since: dict[str, datetime] = {}
        """When the services in `faults` first fell."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when `faults` changed."""

    def start(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Keep `run` running under a name; a running one of that name stays."""
        if name not in self._tasks or self._tasks[name].done():
            self._tasks[name] = asyncio.create_task(self._keep(name, run), name=f"noctuary-{name}")

    def running(self, name: str) -> bool:
        """Whether a service was started and not stopped (one that fell and waits is running)."""
        return name in self._tasks and not self._tasks[name].done()

    async def stop(self, name: str | None = None) -> None:
        """Cancel one service, or all, and wait until they have cleaned up."""
        names = list(self._tasks) if name is None else [name]
        tasks = [self._tasks.pop(each) for each in names if each in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in names:
            self._well(each)

    async def _keep(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        pause = FIRST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            well = loop.call_later(WELL_AFTER, self._well, name)
            try:
                await run()
            # Whatever fells a service is logged in full and shown; the other services go on.
            except Exception as error:  # noqa: BLE001
                # Once, the database takes everybody's connections with it, and the status line tells of it.
                if pause > FIRST_PAUSE or not isinstance(first_of(error), DatabaseUnavailable):
                    self._fell(name, sentence(error))
                foreseen = isinstance(first_of(error), NoctuaryError)
                _log.error("%s stopped: %s", name, sentence(error), exc_info=None if foreseen else error)
                if self._tasks.get(name) is not asyncio.current_task():
                    return  # it was stopped, and the error of its cleaning up took the cancellation's place
            else:
                self._well(name)
                return
            finally:
                well.cancel()
            if loop.time() - started > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            pause = FIRST_PAUSE if await self._told_within(pause) else min(LONGEST_PAUSE, 2 * pause)

    async def _told_within(self, seconds: float) -> bool:
        """Wait; whether `retry_now` was called meanwhile."""
        try:
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 can lose a cancellation
                await self._again.wait()
        except TimeoutError:
            return False
        return True

    def retry_now(self) -> None:
        """Start what fell at once: what it waits for may be there again."""
        self._again.set()
        self._again.clear()

    def _fell(self, name: str, reason: str) -> None:
        before = self.faults.get(name)
        self.faults[name] = reason
        self.since.setdefault(name, datetime.now(UTC))
        if reason != before:
            self.on_change()

    def _well(self, name: str) -> None:
        self.since.pop(name, None)
        if self.faults.pop(name, None) is not None:
            self.on_change()


def first_of(error: BaseException) -> BaseException:
    """The first fault of a group of tasks: that is the one to tell."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def sentence(error: BaseException) -> str:
    """What a fault says in one line."""
    text = str(first_of(error)).strip()
    return text.splitlines()[0] if text else type(first_of(error)).__name__
