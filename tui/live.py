"""From the change feed to the screen: many changes become one message, at most so many a second."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.messages import Changed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from engine.database import Change
    from tui.app import NoctuaryApp

REPAINTS = 4.0
"""Repaints a second for live changes: smooth to the eye, 1 KB/s over SSH."""

REDUCED_REPAINTS = 1.0
"""The same with the setting for slow lines."""

RECONNECTED, LOST = "reconnected", "lost"

ASKED = frozenset({"trace", "language_use"})
"""Topics of what was asked."""

LEARNT = frozenset({"lesson", "cluster", "synthesis_run"})
"""Topics of what was learned."""

APART = ASKED | LEARNT
"""Topics of which nothing stands in the status."""

TOPICS = ("folder", "file", "job", "embedding", "drift", "service", "eval_run", *APART, LOST)
"""Topics of everything that the screen shows."""


class Paced:
    """Calls `act` for many wishes once: at once after a quiet time, then at the given rate."""

    def __init__(self, act: Callable[[], object], per_second: float) -> None:
        self._act = act
        self._pause = 1 / per_second
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None
        self._last = 0.0

    def soon(self) -> bool:
        """Wish it; whether nobody had yet."""
        if self._handle is not None:
            return False
        self._handle = self._loop.call_at(max(self._loop.time(), self._last + self._pause), self._now)
        return True

    def stop(self) -> None:
        """Forget the wish."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _now(self) -> None:
        self._handle, self._last = None, self._loop.time()
        self._act()


async def follow(app: NoctuaryApp, changes: AsyncIterator[Change], per_second: float) -> None:
    """Post `Changed` for what the feed reports: at once after a quiet time, then at the given rate."""
    pending: set[str] = set()

    def post() -> None:
        app.news_waiting = False
        app.post_message(Changed(frozenset(pending)))
        pending.clear()

    paced = Paced(post, per_second)
    try:
        async for change in changes:
            pending.add(change.topic)
            if paced.soon():
                app.news_waiting = True
    finally:
        paced.stop()
