"""The clock set back or forward under a memory: a turn is kept or refused in words, and no lesson is lost by it.

To set the database's clock back by an hour is the same as to move every stamp in its tables an hour ahead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import TurnGone
from engine.language import Language
from engine.memory import Memory
from engine.memory.brains import entered
from engine.memory.model import BrainKey, LessonFilter, LessonState
from engine.notes import Notes
from engine.services import Services

if TYPE_CHECKING:
    from engine.database import Database
    from engine.settings import Settings
    from tests.integration.vault import AttentiveEmbedder

KEY = BrainKey(user="alice")
HOUR = 3600
LONG = 10 * 365 * 24 * HOUR
STAMPS = {
    "packet": ("at", "recorded_at"),
    "turn_token": ("expires_at", "used_at"),
    "lesson": ("created_at", "expires_at", "last_used_at"),
    "synthesis_run": ("started_at", "finished_at"),
    "cluster": ("created_at", "decided_at"),
}


@pytest.fixture
async def memory(database: Database, settings: Settings, embedder: AttentiveEmbedder) -> Memory:
    """A memory with the bundled model and no language model."""
    notes = Notes(database, embedder, settings, Services())
    await notes.prepare()
    return Memory(database, settings, notes.embedders, Language(database, settings))


async def set_back(database: Database, seconds: int) -> None:
    """Set the database's clock back, or forward with a negative number."""
    async with entered(database, KEY) as (connection, _):
        for table, columns in STAMPS.items():
            changes = ", ".join(f"{each} = {each} + {seconds} * interval '1 second'" for each in columns)
            await connection.execute(f"UPDATE {table} SET {changes}".encode())


@pytest.mark.parametrize("seconds", [HOUR, LONG, -2 * HOUR, -LONG])
async def test_a_change_of_the_clock_loses_no_turn_and_no_lesson(
    memory: Memory, database: Database, seconds: int
) -> None:
    for text in ("No, use pnpm here, not npm.", "Please use pnpm here and not npm."):
        await memory.remember(KEY, text)
    await memory.embeddings.run_until_idle()
    await memory.synthesis.run(KEY, actor="test")
    (cluster,) = await memory.synthesis.waiting()
    await memory.synthesis.distil(cluster.id, "Use pnpm, not npm.", actor="test")
    token = (await memory.prepare(KEY, "The heron is grey.")).turn_token
    assert token
    await set_back(database, seconds)

    if seconds > 0:
        assert (await memory.record(KEY, token, "So it is.")).packet
    else:
        with pytest.raises(TurnGone, match="expired"):
            await memory.record(KEY, token, "So it is.")
    again = (await memory.prepare(KEY, "Which package manager do we use, pnpm or npm?")).turn_token
    assert again
    assert (await memory.record(KEY, again, "pnpm.")).packet
    assert (await memory.recall(KEY, "pnpm or npm?")).sources
    assert (await memory.synthesis.run(KEY, actor="test")).state == "completed"

    lessons, _ = await memory.lessons.page(LessonFilter(state=None))
    (lesson,) = lessons
    assert lesson.state is (LessonState.EXPIRED if seconds == -LONG else LessonState.LIVING)
    assert await memory.lessons.pin([lesson.id], pinned=True, actor="test") == [lesson.id]
    (kept,) = await memory.lessons.of(KEY)
    assert kept.text == "Use pnpm, not npm."
