"""Lessons and synthesis over a real database, the real embedding model, and a language model that is scripted."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.language import Language
from engine.memory.brains import entered, everything
from engine.memory.embeddings import Embeddings
from engine.memory.learning import Learnt, Rule, learn
from engine.memory.lesson_changes import Doing, cleaned
from engine.memory.lessons import Lessons
from engine.memory.meaning import Meaning
from engine.memory.model import BrainKey, LessonFilter
from engine.memory.synthesis import Synthesis
from engine.notes import Notes
from engine.services import Services
from tests.memory import remembered

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.database import Database
    from engine.memory.model import Lesson
    from engine.models.embedding.base import Embedder
    from engine.settings import Settings
    from tests.scripted_llm import ScriptedLLM

HOME = BrainKey()
ALICE, BOB = BrainKey(user="alice"), BrainKey(user="bob")

PNPM = ("Please use pnpm, not npm.", "I told you: pnpm instead of npm!", "npm again? Use pnpm please.")
TESTS = ("Run the tests before you commit.", "You committed without running the tests again.")
CHATTER = ("What is the weather in Paris?", "How do I reverse a list in Python?")

TABS = "Always use tabs for indentation."
TABS_AGAIN = "Use tabs for indenting code, always."
NO_TABS = "Never use tabs for indentation."


@dataclass
class Mind:
    """Memory's learning part, and hands to fill it and look into it."""

    database: Database
    meaning: Meaning
    lessons: Lessons
    synthesis: Synthesis
    settings: Settings

    async def said(self, *texts: str, key: BrainKey = HOME, **options: Any) -> int:
        """Turns, each with its vector. Returns the brain's id."""
        brain = 0
        for text in texts:
            brain = await remembered(self.database, text, key, models=self.lessons.models(), **options)
        await self.embed()
        return brain

    async def embed(self) -> None:
        await Embeddings(self.database, self.meaning).run_until_idle()

    async def rule(self, text: str, *, key: BrainKey = HOME, blind: bool = False) -> Rule:
        """A rule that the brain's last turn taught; blind: no model tells what it means."""
        ((packet,),) = await self.rows("SELECT max(id) FROM packet", key=key)
        return Rule(cleaned(text), None if blind else await self.meaning.passage(text), [packet], None)

    async def learnt(
        self, text: str, *, key: BrainKey = HOME, actor: str = "tests", blind: bool = False
    ) -> Learnt:
        """A rule as synthesis writes it, from a turn of the same words."""
        await self.said(text, key=key)
        rule = await self.rule(text, key=key, blind=blind)
        async with entered(self.database, key) as (connection, brain):
            doing = Doing(actor, self.settings.lesson_days)
            return await learn(connection, brain, rule, doing, self.lessons.models())

    async def all(self, **where: Any) -> list[Lesson]:
        """Lessons of every brain, the oldest first."""
        found, total = await self.lessons.page(LessonFilter(**{"state": None, **where}))
        assert len(found) == total
        return found[::-1]

    async def texts(self, **where: Any) -> list[str]:
        return [lesson.text for lesson in await self.all(**where)]

    async def rows(
        self, statement: str, *values: object, key: BrainKey | None = None
    ) -> list[tuple[Any, ...]]:
        """What a statement finds in a brain, or reads in all."""
        if key is None:
            async with everything(self.database) as connection:
                return await (await connection.execute(statement.encode(), values or None)).fetchall()
        async with entered(self.database, key) as (connection, _):
            cursor = await connection.execute(statement.encode(), values or None)
            return await cursor.fetchall() if cursor.description else []

    async def as_if_days_later(self, days: float, *, key: BrainKey = HOME) -> None:
        """Everything of the brain's lessons was so much earlier."""
        await self.rows(
            "UPDATE lesson SET created_at = created_at - make_interval(secs => %s),"
            " expires_at = expires_at - make_interval(secs => %s)",
            days * 86400,
            days * 86400,
            key=key,
        )


@asynccontextmanager
async def mind_over(
    database: Database,
    settings: Settings,
    embedder: Embedder,
    *,
    llm: ScriptedLLM | None = None,
    provider: str = "ollama",
    **more: Any,
) -> AsyncIterator[Mind]:
    """Everything that learns, with a model to distil or without."""
    named = llm.settings(provider) if llm is not None else {}
    settings = replace(settings, **{**named, **more})
    services = Services()
    notes = Notes(database, embedder, settings, services)
    await notes.prepare()
    language = Language(database, settings)
    meaning = Meaning(notes.embedders)
    lessons = Lessons(database, meaning, settings)
    synthesis = Synthesis(database, meaning, lessons, language, settings)
    try:
        yield Mind(database, meaning, lessons, synthesis, settings)
    finally:
        await services.stop()
        await language.close()
