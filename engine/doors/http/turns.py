"""Turns: how many requests of a kind are worked on at once, and how long one may take with its waiting."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.doors.http.problems import Busy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Turns:
    """So many at once, each within so many seconds. Those that wait come in order."""

    def __init__(self, number: int, seconds: float) -> None:
        self._free = asyncio.Semaphore(number)
        self._seconds = seconds

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """While it is one's turn.

        Raises:
            Busy: the time is over.
        """
        try:
            async with asyncio.timeout(self._seconds), self._free:
                yield
        except TimeoutError as error:
            raise Busy from error


def searches() -> int:
    """Searches at once: each has a core, and another may wait for the database meanwhile. More of them end no
    sooner, take the database's connections from what runs in the background, and the cores from a console.
    """
    return (os.cpu_count() or 1) + 1
