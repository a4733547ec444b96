"""Lessons: the standing rules of each brain, which a person reviews, edits, pins, deletes and takes back.

A lesson lives some days and is renewed only by being used. A deleted one stays as a tombstone with its
vector: what says the same is not written again, until the tombstone is lifted. What is done is in the audit.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.errors import LessonError
from engine.memory import lesson_changes as changes
from engine.memory import lesson_rows as rows
from engine.memory import packets
from engine.memory.brains import entered, entered_by_id, everything, go_into, look_everywhere
from engine.memory.lesson_changes import LARGEST_ID, Change, Doing
from engine.memory.model import BrainId, LessonDetail, LessonFilter, LessonState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.memory.lesson_rows import Order
    from engine.memory.meaning import Meaning, Meant
    from engine.memory.model import AuditRow, BrainKey, GivenLesson, Lesson, LessonCounts
    from engine.settings import Settings

MOST_GIVEN = 8
"""Lessons that go with a turn."""

SOURCES = 200
"""Turns of a lesson or cluster that are shown, the newest; each may be long."""

HISTORY = 200
"""Rows of a lesson's history that are shown, the newest."""

_VISIT = f"""
    INSERT INTO visit (pane, at) VALUES ('{rows.PANE}', clock_timestamp())
    ON CONFLICT (pane) DO UPDATE SET at = excluded.at
"""

_BRAINS = """
    SELECT brain, array_agg(id ORDER BY id) FROM lesson WHERE id = ANY(%s::integer[])
    GROUP BY brain ORDER BY brain
"""


class Lessons:
    """The lessons of all brains. A `key` holds a call to one; without it, it is the person's console."""

    def __init__(self, database: Database, meaning: Meaning, settings: Settings) -> None:
        self._database = database
        self._meaning = meaning
        self._days = settings.lesson_days

    # Reading

    async def page(
        self, where: LessonFilter, *, order: Order = "newest", offset: int = 0, limit: int = 200
    ) -> tuple[list[Lesson], int]:
        """Lessons of all brains in the order, and how many the filter lets through."""
        async with everything(self._database) as connection:
            found = await rows.page(connection, where, order, offset=offset, limit=limit)
            return found, await rows.count(connection, where)

    async def of(self, key: BrainKey, limit: int = 50) -> list[Lesson]:
        """The living lessons of a brain, the pinned first, then those learned most often.

        Raises:
            CoreUnknown: the account has no such core.
        """
        async with entered(self._database, key) as (connection, brain):
            return await rows.page(connection, LessonFilter(), "reinforced", brain=brain, limit=limit)

    async def detail(self, lesson: int, key: BrainKey | None = None) -> LessonDetail:
        """A lesson with the turns it came from (of many, the newest) and its history, oldest first.

        Raises:
            LessonError: there is none of that id (in the brain).
            CoreUnknown: the account has no such core.
        """
        async with self._seen(key) as (connection, brain):
            found = await self._one(connection, lesson, brain)
            ids = await rows.sources(connection, found.brain, lesson, SOURCES)
            turns = await packets.turns(connection, found.brain, ids)
            history = await rows.audit(connection, limit=HISTORY, brain=found.brain, lesson=lesson)
        return LessonDetail(found, tuple(turns), tuple(reversed(history)))

    async def counts(self) -> LessonCounts:
        """What is new, expires and waits, over all brains."""
        async with everything(self._database) as connection:
            return await rows.counts(connection)

    async def audit(self, limit: int, lesson: int | None = None) -> list[AuditRow]:
        """What was done to lessons, or to one, newest first."""
        async with everything(self._database) as connection:
            return await rows.audit(connection, limit=limit, lesson=lesson)

    async def visit(self) -> None:
        """The person was in the pane now: what came until here is not new any more."""
        async with self._database.connection() as connection:
            await connection.execute(_VISIT.encode())

    # What a person or an agent does to them

    async def delete(
        self, ids: Sequence[int], *, actor: str, reason: str = "", key: BrainKey | None = None
    ) -> list[int]:
        """Delete lessons, each leaving a tombstone. Returns the ids of those that were not deleted before.

        Raises:
            LessonError: with a `key`, one is not there.
            CoreUnknown: the account has no such core.
        """
        return await self._change(Change.DELETE, ids, Doing(actor, self._days, reason), key)

    async def lift(self, ids: Sequence[int], *, actor: str, key: BrainKey | None = None) -> list[int]:
        """Take back deletions: the lessons live again, with all their days. Returns the ids of those lifted.

        Raises:
            LessonError: with a `key`, one is not there.
            CoreUnknown: the account has no such core.
        """
        return await self._change(Change.LIFT, ids, Doing(actor, self._days), key)

    async def pin(
        self,
        ids: Sequence[int],
        pinned: bool,
        *,
        actor: str,
        key: BrainKey | None = None,
    ) -> list[int]:
        """Pin lessons, which then go with every turn and do not expire, or let them go. Returns the ids of
        those that changed.

        Raises:
            LessonError: with a `key`, one is not there.
            CoreUnknown: the account has no such core.
        """
        return await self._change(Change.PIN if pinned else Change.UNPIN, ids, Doing(actor, self._days), key)

    async def edit(self, lesson: int, text: str, *, actor: str, key: BrainKey | None = None) -> Lesson:
        """Give a lesson another wording. Its sources, uses and history stay; its vector is made anew with it.

        Raises:
            LessonError: there is none of that id (in the brain), it was deleted, or the text is none.
            CoreUnknown: the account has no such core.
        """
        line = changes.cleaned(text)
        meant = await self._meaning.passage(line)
        async with self._seen(key) as (connection, brain):
            found = await self._one(connection, lesson, brain)
            if found.state is LessonState.DELETED:
                raise LessonError(f"{found.reference} was deleted.", remedy="Lift its tombstone first.")
            if key is None:
                await go_into(connection, found.brain)
            await changes.lock(connection, found.brain)
            doing = Doing(actor, self._days)
            if await changes.change(connection, found.brain, Change.EDIT, [lesson], doing, text=line):
                await changes.keep_vectors(connection, found.brain, lesson, line, meant, models=self.models())
            if key is None:
                await look_everywhere(connection)
            return await self._one(connection, lesson, brain)

    # What recall and synthesis need of them

    async def given(
        self, connection: AsyncConnection, brain: BrainId, meant: Meant | None, k: int = MOST_GIVEN
    ) -> list[GivenLesson]:
        """The lessons for a turn that means `meant`: pinned ones and those learned most often always, then
        what has to do with it. The transaction has entered the brain.
        """
        return await rows.given(connection, brain, meant, k)

    async def used(self, connection: AsyncConnection, brain: BrainId, ids: Sequence[int]) -> None:
        """Lessons were given with a turn: count it, and begin their days anew."""
        await changes.used(connection, brain, ids, self._days)

    async def texts(self, connection: AsyncConnection, brain: BrainId, ids: Sequence[int]) -> list[str]:
        """What lessons of the brain say."""
        return await rows.texts(connection, brain, ids)

    def models(self) -> list[int]:
        """The models of which a lesson shall get vectors."""
        return [each.id for each in self._meaning.models()]

    async def see_all(self, brain: BrainId) -> None:
        """Make the vectors that the answering model lacks of the brain's lessons, tombstones among them:
        after a change of model a deleted lesson would come back in other words.
        """
        for model in self._meaning.models()[:1]:
            async with entered_by_id(self._database, brain) as connection:
                lacking = await changes.vectorless(connection, brain, model.id)
            for lesson, text in lacking:
                meant = await self._meaning.passage(text)
                if meant is None:
                    return
                async with entered_by_id(self._database, brain) as connection:
                    await changes.keep_vector(connection, brain, lesson, text, meant)

    # Scope

    async def _change(
        self, what: Change, ids: Sequence[int], doing: Doing, key: BrainKey | None
    ) -> list[int]:
        """Do it in one transaction, whatever brains they are of."""
        done: list[int] = []
        async with self._seen(key) as (connection, brain):
            for each, own in (await self._by_brain(connection, ids, brain)).items():
                if key is None:
                    await go_into(connection, each)
                await changes.lock(connection, each)
                done += await changes.change(connection, each, what, own, doing)
        return sorted(done)

    async def _by_brain(
        self, connection: AsyncConnection, ids: Sequence[int], brain: BrainId | None
    ) -> Mapping[BrainId, Sequence[int]]:
        """The lessons that there are, by brain, always in the same order: who locks several cannot lock up.

        Raises:
            LessonError: within one brain, one is not there.
        """
        wanted = [each for each in ids if 0 < each <= LARGEST_ID]
        cursor = await connection.execute(_BRAINS, (wanted,))
        found = {BrainId(row[0]): row[1] for row in await cursor.fetchall()}
        if brain is not None and (lost := set(ids) - set(found.get(brain, ()))):
            raise _missing(min(lost))
        return found

    @asynccontextmanager
    async def _seen(self, key: BrainKey | None) -> AsyncIterator[tuple[AsyncConnection, BrainId | None]]:
        """A transaction that sees one brain, or all: (connection, the one brain)."""
        if key is None:
            async with everything(self._database) as connection:
                yield connection, None
        else:
            async with entered(self._database, key) as inside:
                yield inside

    async def _one(self, connection: AsyncConnection, lesson: int, brain: BrainId | None) -> Lesson:
        found = await rows.one(connection, lesson, brain)
        if found is None:
            raise _missing(lesson)
        return found


def _missing(lesson: int) -> LessonError:
    return LessonError(f"There is no lesson L{lesson} here.", remedy="`noctuary lessons` lists them.")
