"""Lessons, tombstones and waiting clusters in the real database, for the tests of their pane."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.memory.brains import entered
from engine.memory.model import BrainKey
from tests.memory import remembered
from tests.tui.desk import Desk, desk
from tui.panes.lessons import LessonsPane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from engine.database import Database
    from engine.memory.model import Lesson
    from engine.settings import Settings
    from tui.screens.ask_line import AskLine

HOME, ALICE = BrainKey(), BrainKey(user="alice")

PACKETS = "SELECT array_agg(id ORDER BY id) FROM packet WHERE brain = %s"
LESSON = """
    WITH made AS (
        INSERT INTO lesson (brain, text, created_by, created_at, expires_at, uses, last_used_at)
        VALUES (%(brain)s, %(text)s, 'model tests', now() - make_interval(days => %(age)s),
            now() + make_interval(days => %(left)s, hours => 1), %(uses)s,
            CASE WHEN %(uses)s > 0 THEN now() - interval '2 hours' END)
        RETURNING id
    ), told AS (
        INSERT INTO memory_audit (brain, actor, action, lesson) SELECT %(brain)s, 'model tests', 'create', id
        FROM made
    ), sources AS (
        INSERT INTO lesson_source (brain, lesson, packet)
        SELECT %(brain)s, id, unnest(%(packets)s::integer[]) FROM made
    ) SELECT id FROM made
"""
RUN = """
    INSERT INTO synthesis_run (brain, distiller, actor, state) VALUES (%s, 'model', 'tests', 'completed')
    RETURNING id
"""
CLUSTER = """
    INSERT INTO cluster (brain, run, corrections, packets, cohesion, error)
    VALUES (%s, %s, 1, %s, 0.9, %s) RETURNING id
"""
CLUSTERED = "INSERT INTO cluster_packet (brain, cluster, packet) SELECT %s, %s, unnest(%s::integer[])"


async def learnt(
    database: Database,
    *texts: str,
    key: BrainKey = HOME,
    age: int = 3,
    left: int = 20,
    uses: int = 0,
    packets: Sequence[int] = (),
) -> list[int]:
    """Lessons of these words. Returns their ids."""
    ids = []
    async with entered(database, key, make=True) as (connection, brain):
        for text in texts:
            values = {"brain": brain, "text": text, "age": age, "left": left, "uses": uses}
            values["packets"] = [*packets]  # type: ignore[assignment]
            row = await (await connection.execute(LESSON, values)).fetchone()
            assert row is not None
            ids.append(row[0])
    return ids


async def said(database: Database, *texts: str, key: BrainKey = HOME, **options: Any) -> list[int]:
    """Turns of these words. Returns the ids of the brain's packets."""
    for text in texts:
        await remembered(database, text, key, **options)
    async with entered(database, key, make=True) as (connection, brain):
        row = await (await connection.execute(PACKETS, (brain,))).fetchone()
    return list(row[0]) if row and row[0] else []


async def clustered(database: Database, *texts: str, key: BrainKey = HOME, error: str = "") -> int:
    """A waiting cluster of these turns. Returns its id."""
    packets = (await said(database, *texts, key=key))[-len(texts) :]
    async with entered(database, key) as (connection, brain):
        run = await (await connection.execute(RUN, (brain,))).fetchone()
        assert run is not None
        values = (brain, run[0], len(packets), error)
        row = await (await connection.execute(CLUSTER, values)).fetchone()
        assert row is not None
        await connection.execute(CLUSTERED, (brain, row[0], packets))
    return int(row[0])


class Review(Desk):
    """The running app at its lessons pane."""

    @property
    def pane(self) -> LessonsPane:
        return next(pane for pane in self.app.panes if isinstance(pane, LessonsPane))

    @property
    def rules(self) -> list[str]:
        return [row.cells[-1] for row in self.pane.list.rows]

    @property
    def signs(self) -> list[str]:
        """The first cells of the rows: D for deletion, + for new."""
        return [row.cells[0].replace("+", "").strip() for row in self.pane.list.rows]

    @property
    def here(self) -> str:
        row = self.pane.list.current
        return row.cells[-1] if row is not None else ""

    @property
    def asking(self) -> AskLine[Any]:
        return self.app.screen  # type: ignore[return-value]

    async def living(self) -> list[str]:
        """What lives in the database, the oldest first."""
        return sorted(lesson.text for lesson in await self.all() if lesson.deleted_at is None)

    async def all(self) -> list[Lesson]:
        from engine.memory.model import LessonFilter

        lessons, _ = await self.engine.memory.lessons.page(LessonFilter(state=None), limit=10_000)
        return lessons


@asynccontextmanager
async def review(
    settings: Settings, *rules: str, size: tuple[int, int] = (80, 24), live: bool = False
) -> AsyncIterator[Review]:
    """The app at its lessons pane, with these lessons, of which the first stands on top."""
    async with desk(settings, size=size, live=live) as begun:
        opened = Review(begun.pilot, begun.app)
        await learnt(opened.engine.database, *reversed(rules))
        await opened.press("5")
        yield opened
