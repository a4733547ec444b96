"""From the change feed to the screen: many changes become one message, at most so many a second."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.messages import Changed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.database import Change
    from tui.app import NoctuaryApp

REPAINTS = 4.0
"""Repaints a second for live changes: smooth to the eye, 1 KB/s over SSH."""

REDUCED_REPAINTS = 1.0
"""The same with the setting for slow lines."""

RECONNECTED, LOST = "reconnected", "lost"


async def follow(app: NoctuaryApp, changes: AsyncIterator[Change], per_second: float) -> None:
    """Post `Changed` for what the feed reports: at once after a quiet time, then at the given rate."""
    loop = asyncio.get_running_loop()
    pending: set[str] = set()
    handle: asyncio.TimerHandle | None = None
    last = 0.0

    def post() -> None:
        nonlocal handle, last
        handle, last = None, loop.time()
        app.news_waiting = False
        app.post_message(Changed(frozenset(pending)))
        pending.clear()

    try:
        async for change in changes:
            pending.add(change.topic)
            if handle is None:
                app.news_waiting = True
                handle = loop.call_at(max(loop.time(), last + 1 / per_second), post)
    finally:
        if handle is not None:
            handle.cancel()
