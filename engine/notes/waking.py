"""Work that is woken by what changes in the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.database import Database


async def wake_on(database: Database, topic: str, wake: Callable[[], None]) -> None:
    """Call `wake` at each change of a table, until cancelled."""
    async for _ in database.feed.subscribe(topic):
        wake()
