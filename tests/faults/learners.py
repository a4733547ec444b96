"""What is killed in the midst of learning: a synthesis that never ends, and deletions that come and go."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from engine.errors import SynthesisBusy
from engine.memory.model import LessonFilter
from engine.models.embedding.bundled import BundledEmbedder
from tests.learning import HOME, mind_over

if TYPE_CHECKING:
    from engine.database import Database
    from engine.settings import Settings

PACE = 0.005
"""Seconds between two looks of a learner that has nothing to do, or that another is before."""


async def learn(database: Database, settings: Settings) -> None:
    """Learn whatever there is, again and again."""
    async with mind_over(database, settings, BundledEmbedder()) as mind:
        while True:
            with contextlib.suppress(SynthesisBusy):
                await mind.synthesis.run(HOME, actor="learner")
            await asyncio.sleep(PACE)


async def delete_and_lift(database: Database, settings: Settings) -> None:
    """Delete all lessons in one commit, and take it back, again and again."""
    async with mind_over(database, settings, BundledEmbedder()) as mind:
        found, _ = await mind.lessons.page(LessonFilter(state=None))
        ids = [lesson.id for lesson in found]
        while True:
            await mind.lessons.delete(ids, actor="deleter", reason="again")
            await mind.lessons.lift(ids, actor="deleter")
