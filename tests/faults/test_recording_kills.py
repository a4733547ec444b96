"""Recorders killed in the midst of it: a turn is whole, with its token used, or it is not there at all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.memory.brains import everything
from tests.faults.nursery import TASK
from tests.support import eventually

if TYPE_CHECKING:
    import random

    from engine.database import Database
    from engine.settings import Settings
    from tests.faults.nursery import Nursery

KILLS = 12

_LEFT = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s AND datname = current_database()"
)

_WHOLE = {
    "an entry is of a packet": """
        SELECT id FROM entry WHERE NOT EXISTS (SELECT FROM packet WHERE packet.brain = entry.brain
            AND entry.id IN (packet.input, packet.response))""",
    "a packet has its answer": "SELECT id FROM packet WHERE response IS NULL",
    "a packet has all its terms": """
        SELECT id FROM packet WHERE length <> (SELECT coalesce(sum(tf), 0) FROM packet_posting AS posting
            WHERE posting.brain = packet.brain AND posting.packet = packet.id)""",
    "a packet waits for its vector, or has it": """
        SELECT id FROM packet WHERE NOT EXISTS (SELECT FROM packet_embedding AS known
            WHERE known.brain = packet.brain AND known.packet = packet.id)""",
    "a used token has its packet": """
        SELECT packet FROM turn_token WHERE (used_at IS NULL) <> (packet IS NULL)
            OR (packet IS NOT NULL AND NOT EXISTS (SELECT FROM packet AS kept WHERE kept.brain = turn_token.brain
                AND kept.id = turn_token.packet))""",
    "a packet has one token": """
        SELECT packet.id FROM packet LEFT JOIN turn_token AS token ON token.brain = packet.brain
            AND token.packet = packet.id GROUP BY packet.id HAVING count(token.packet) <> 1""",
    "a question has its own answer": """
        SELECT packet.id FROM packet
        JOIN entry AS input ON input.brain = packet.brain AND input.id = packet.input
        JOIN entry AS response ON response.brain = packet.brain AND response.id = packet.response
        WHERE split_part(replace(input.text, 'Turn', 'Answer'), ':', 1) <> rtrim(response.text, '.')""",
}


async def rows(database: Database, statement: str) -> list[object]:
    async with everything(database) as connection:
        return await (await connection.execute(statement.encode())).fetchall()


async def test_a_turn_is_recorded_whole_or_not_at_all(
    database: Database,
    settings: Settings,
    environment: dict[str, str],
    nursery: Nursery,
    chance: random.Random,
) -> None:
    mine = {**environment, "DATABASE_URL": settings.database_url or ""}
    unused = 0
    for _ in range(KILLS):
        pid = await nursery.spawn(mine, task="tests.faults.recorders:record")
        before = len(await rows(database, "SELECT id FROM packet"))
        await eventually(lambda before=before: _more(database, before))  # type: ignore[misc]
        await asyncio.sleep(chance.uniform(0, 0.03))  # the moment of death
        await nursery.kill(pid)
        await eventually(lambda: _gone(database))
        for what, statement in _WHOLE.items():
            assert await rows(database, statement) == [], what
        unused += len(await rows(database, "SELECT hash FROM turn_token WHERE used_at IS NULL")) > unused
    assert unused, "it was never killed between a prepared turn and its record"


async def _more(database: Database, before: int) -> bool:
    return len(await rows(database, "SELECT id FROM packet")) > before


async def _gone(database: Database) -> bool:
    """Whether the server has noticed that the killed one is gone."""
    async with database.connection() as connection:
        cursor = await connection.execute(_LEFT, (f"{TASK}%",))
        return await cursor.fetchone() == (0,)
