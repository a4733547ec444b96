"""A cancelled task ends, also when its cancellation meets a connection from a crowded pool."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.database import Database


async def test_a_crowded_pool_loses_no_cancellation(database: Database) -> None:
    async def forever() -> None:
        while True:
            async with database.connection() as connection:
                await connection.execute("SELECT 1")

    for attempt in range(40):
        tasks = [asyncio.create_task(forever()) for _ in range(24)]
        for _ in range(attempt % 9):
            await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        _, alive = await asyncio.wait(tasks, timeout=10)
        for task in alive:
            task.cancel()
        assert not alive, f"{len(alive)} of {len(tasks)} tasks go on after they were cancelled"
