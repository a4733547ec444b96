"""The engine of a server that speaks before it is open: opened beside it, and waited for by each call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.errors import NoctuaryError

if TYPE_CHECKING:
    from engine import Engine
    from engine.settings import Settings


class Opened:
    """One engine, opened in the background. An attempt that failed is made again when somebody asks."""

    def __init__(self, settings: Settings, *, application: str, live: bool) -> None:
        self._settings = settings
        self._application = application
        self._live = live
        self._opening: asyncio.Task[Engine] | None = None

    def begin(self) -> asyncio.Task[Engine]:
        """Open, unless that is under way or done."""
        task = self._opening
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._opening = asyncio.create_task(self._open(), name="noctuary-open")
        return task

    async def engine(self) -> Engine:
        """The engine, once it is open. Whoever waits may be cancelled; the opening goes on.

        Raises:
            NoctuaryError: it cannot be opened.
        """
        return await asyncio.shield(self.begin())

    async def close(self) -> None:
        """Leave the database in order, also when it is not open yet."""
        task, self._opening = self._opening, None
        if task is None:
            return
        task.cancel()
        try:
            engine = await task
        except (asyncio.CancelledError, NoctuaryError):
            return
        await engine.close()

    async def _open(self) -> Engine:
        from engine import Engine

        engine = await Engine.open(self._settings, application=self._application)
        try:
            await engine.start(watch=self._live, work=self._live, embed=self._live)
        except BaseException:  # cancelled too: nobody else would close it
            await engine.close()
            raise
        return engine
