"""What is saved while the embedding model is being changed is read by the model that answers, too.

Else such a note would be found by its words alone until the new model has read all the others. These are
few, so the large backlog of the new model waits for them.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.notes.backlog import IDLE_WAIT
from engine.notes.waking import wake_on

if TYPE_CHECKING:
    from engine.database import Database
    from engine.notes.backlog import Backlog
    from engine.notes.embedders import Embedders

RETRY_PAUSE = 30.0
"""Seconds until a model that failed is asked again."""

_log = logging.getLogger("noctuary.embedding")


class Interim:
    """Makes vectors of the model that answers, as long as another one is in the making."""

    def __init__(self, database: Database, embedders: Embedders) -> None:
        self._database = database
        self._embedders = embedders
        self._wake = asyncio.Event()
        self._trouble = ""

    def wake(self) -> None:
        """Look now whether there is something to read."""
        if (backlog := self._embedders.meanwhile) is not None:
            backlog.wake()
        self._wake.set()

    async def run(self) -> None:
        """Make them until cancelled, before the new model goes on with its own."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._run())
            for topic in ("job", "embedding", "model"):
                group.create_task(wake_on(self._database, topic, self.wake))

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            large = self._embedders.backlog
            if not self._trouble:  # else the new model would wait for one that perhaps never answers
                large.turn.clear()
            try:
                await self.run_until_idle()
            finally:
                large.turn.set()
            await self._pause()

    async def _pause(self) -> None:
        if self._trouble:
            await asyncio.sleep(RETRY_PAUSE)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_WAIT):  # wait_for of Python 3.11 can lose a cancellation
                await self._wake.wait()

    async def run_until_idle(self) -> None:
        """Make those that wait. A model that fails is no fault of the change: searches say what it leaves."""
        while (backlog := self._embedders.meanwhile) is not None:
            try:
                more = await backlog.step()
            except ModelError as error:
                if self._embedders.meanwhile is backlog:  # else it was closed: another one answers now
                    self._told(backlog, error)
                    return
            else:
                self._trouble = ""
                if not more:
                    return
        self._trouble = ""

    def _told(self, backlog: Backlog, error: ModelError) -> None:
        before, self._trouble = self._trouble, str(error)
        if before != self._trouble and backlog.known is not None:
            _log.warning(
                "what is saved now is not read by %s, which still answers: %s", backlog.known.name, error
            )
