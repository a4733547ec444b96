"""Work whose progress is told while it goes on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

INTERVAL = 0.25
"""Seconds between reports to a caller that waits for the work to be done."""


async def reporting(work: Coroutine[None, None, None], report: Callable[[], Awaitable[None]]) -> None:
    """Do the work, and call `report` every so often and at its end. Cancelled, the work ends too."""
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=INTERVAL)
            await report()
        await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
