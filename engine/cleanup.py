"""Cleaning up that has to be finished, whatever becomes of whoever does it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine


async def to_its_end(work: Coroutine[None, None, object]) -> None:
    """Do work that is soon done, to its end also when the caller is cancelled meanwhile, and again.

    What is stopped twice (alone, and with all the others) would otherwise leave a killed process that nobody
    sees gone. A cancellation that came is raised when the work is done, which its own error goes before.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})  # cancelled, it leaves the task alone
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled
