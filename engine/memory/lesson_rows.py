"""Lessons read: pages and counts over all brains, one with its history, and those that go with a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from engine.memory.model import (
    AuditRow,
    BrainId,
    GivenLesson,
    Lesson,
    LessonCounts,
    LessonFilter,
    LessonState,
)
from engine.memory.packets import storable
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.memory.meaning import Meant

Order = Literal["newest", "expiring", "unused", "reinforced"]

PANE = "lessons"
"""The pane's name among the visits."""

EXPIRING_DAYS = 7
"""Days before its expiry from which a lesson is counted as expiring."""

ALWAYS = 3
"""Lessons that go with every turn because they were learned most often."""

OFTEN = 2
"""Times a lesson must have been learned to be one of them: one that was learned once goes with turns that it
has to do with, or it would be renewed by turns that never needed it."""

_VISITED = f"(SELECT visit.at FROM visit WHERE pane = '{PANE}')"

_HEARD = f"""FROM memory_audit AS heard
    WHERE heard.brain = lesson.brain AND heard.lesson = lesson.id
        AND heard.action IN ('create', 'strengthen') AND heard.at > coalesce({_VISITED}, '-infinity')"""

_NEW = f"({_VISITED} IS NULL OR EXISTS (SELECT {_HEARD}))"

_STATE = """CASE WHEN lesson.deleted_at IS NOT NULL THEN 'deleted'
    WHEN lesson.pinned OR lesson.expires_at > now() THEN 'living' ELSE 'expired' END"""

_FROM = """
    FROM lesson JOIN brain ON brain.id = lesson.brain JOIN core ON core.id = brain.core
    WHERE (%(brain)s::integer IS NULL OR lesson.brain = %(brain)s)
        AND (%(id)s::bigint IS NULL OR lesson.id = %(id)s)
"""

_WHERE = f"""
        AND (%(core)s::text IS NULL OR core.slug = %(core)s)
        AND (%(user)s::text IS NULL OR brain.end_user = %(user)s)
        AND (%(state)s::text IS NULL OR {_STATE} = %(state)s)
        AND (%(older)s::float8 IS NULL
            OR lesson.created_at < now() - make_interval(secs => %(older)s * 86400))
        AND (NOT %(unused)s OR lesson.uses = 0)
        AND (NOT %(new)s OR {_NEW})
        AND NOT EXISTS (SELECT FROM unnest(%(words)s::text[]) AS word
            WHERE position(lower(word) IN lower(lesson.text)) = 0)
"""

_COLUMNS = f"""
    SELECT lesson.id, lesson.brain, core.slug, brain.end_user, lesson.text, {_STATE}, lesson.created_at,
        lesson.created_by, lesson.expires_at, lesson.last_used_at, lesson.uses, lesson.reinforced,
        lesson.pinned,
        (SELECT count(*) FROM lesson_source AS source
            WHERE source.brain = lesson.brain AND source.lesson = lesson.id),
        {_NEW}, lesson.edited_at, lesson.deleted_at, coalesce(lesson.deleted_by, ''), lesson.reason
"""

_ORDERS = {
    "newest": "lesson.created_at DESC, lesson.id DESC",
    "expiring": "lesson.pinned, lesson.expires_at, lesson.id",
    "unused": "lesson.uses, coalesce(lesson.last_used_at, lesson.created_at), lesson.id",
    "reinforced": "lesson.pinned DESC, lesson.reinforced DESC, lesson.id",
}

_PAGE = {
    order: f"{_COLUMNS} {_FROM} {_WHERE} ORDER BY {by} LIMIT %(limit)s OFFSET %(offset)s"
    for order, by in _ORDERS.items()
}
_COUNT = f"SELECT count(*) {_FROM} {_WHERE}"

_COUNTS = f"""
    SELECT count(*) FILTER (WHERE {_STATE} = 'living'),
        count(*) FILTER (WHERE {_STATE} = 'living' AND {_NEW}),
        count(*) FILTER (WHERE {_STATE} = 'living' AND NOT pinned
            AND expires_at < now() + make_interval(days => %(days)s)),
        count(*) FILTER (WHERE {_STATE} = 'deleted'),
        min(coalesce((SELECT min(heard.at) {_HEARD}), created_at))
            FILTER (WHERE {_STATE} = 'living' AND {_NEW}),
        min(expires_at) FILTER (WHERE {_STATE} = 'living' AND NOT pinned)
    FROM lesson
"""
_WAITING = "SELECT count(*), min(created_at) FROM cluster WHERE state = 'waiting'"

_SOURCES = "SELECT packet FROM lesson_source WHERE brain = %s AND lesson = %s ORDER BY packet DESC LIMIT %s"

_AUDIT = """
    SELECT at, actor, action, lesson, before, after, reason FROM memory_audit
    WHERE (%(brain)s::integer IS NULL OR brain = %(brain)s)
        AND (%(lesson)s::bigint IS NULL OR lesson = %(lesson)s)
    ORDER BY id DESC LIMIT %(limit)s
"""

_GIVEN = """
    WITH living AS MATERIALIZED (
        SELECT lesson.id, lesson.text, lesson.reinforced, lesson.pinned,
            1 - (known.vector <=> %(vector)s::halfvec) AS similarity,
            row_number() OVER (PARTITION BY lesson.pinned ORDER BY lesson.reinforced DESC, lesson.id) AS place
        FROM lesson LEFT JOIN lesson_embedding AS known ON known.model = %(model)s
            AND known.brain = lesson.brain AND known.lesson = lesson.id AND known.state = 'embedded'
        WHERE lesson.brain = %(brain)s AND lesson.deleted_at IS NULL
            AND (lesson.pinned OR lesson.expires_at > now())
    ), ranked AS (
        SELECT id, text, similarity, reinforced, pinned,
            pinned OR (reinforced >= %(often)s AND place <= %(always)s) AS stands FROM living
    )
    SELECT id, text, similarity, reinforced, pinned FROM ranked WHERE stands OR similarity >= %(floor)s
    ORDER BY stands DESC, pinned DESC, CASE WHEN stands THEN reinforced END DESC,
        similarity DESC NULLS LAST, id
    LIMIT %(limit)s
"""


async def page(
    connection: AsyncConnection,
    where: LessonFilter,
    order: Order,
    *,
    brain: BrainId | None = None,
    offset: int = 0,
    limit: int,
) -> list[Lesson]:
    """Lessons of the brain, or of all that the transaction sees."""
    parameters = {**_parameters(where, brain), "offset": offset, "limit": limit}
    cursor = await connection.execute(_PAGE[order].encode(), parameters)
    return [_lesson(row) for row in await cursor.fetchall()]


async def count(connection: AsyncConnection, where: LessonFilter) -> int:
    """How many the filter lets through, in all brains that the transaction sees."""
    cursor = await connection.execute(_COUNT.encode(), _parameters(where, None))
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def one(connection: AsyncConnection, lesson: int, brain: BrainId | None = None) -> Lesson | None:
    """A lesson, whatever its state, if the transaction sees it."""
    found = await page(connection, LessonFilter(id=lesson, state=None), "newest", brain=brain, limit=1)
    return found[0] if found else None


async def counts(connection: AsyncConnection) -> LessonCounts:
    """What waits and what goes, in all brains."""
    cursor = await connection.execute(_COUNTS.encode(), {"days": EXPIRING_DAYS})
    living, new, expiring, tombstones, oldest, soonest = await cursor.fetchone() or (0, 0, 0, 0, None, None)
    cursor = await connection.execute(_WAITING)
    waiting, oldest_waiting = await cursor.fetchone() or (0, None)
    return LessonCounts(living, new, expiring, tombstones, waiting, oldest, oldest_waiting, soonest)


async def sources(connection: AsyncConnection, brain: BrainId, lesson: int, limit: int) -> list[int]:
    """The packets that a lesson came from, the newest first."""
    cursor = await connection.execute(_SOURCES, (brain, lesson, limit))
    return [row[0] for row in await cursor.fetchall()]


async def audit(
    connection: AsyncConnection, *, limit: int, brain: BrainId | None = None, lesson: int | None = None
) -> list[AuditRow]:
    """What was done, newest first: in the brain or in all, to the lesson or to any."""
    parameters = {"brain": brain, "lesson": lesson, "limit": limit}
    cursor = await connection.execute(_AUDIT, parameters)
    return [AuditRow(*row) for row in await cursor.fetchall()]


async def given(
    connection: AsyncConnection, brain: BrainId, meant: Meant | None, limit: int
) -> list[GivenLesson]:
    """The living lessons for a turn that means `meant`: the pinned and those learned most often first, then
    those that are near enough to it.
    """
    parameters = {
        "brain": brain,
        "model": meant.model.id if meant else None,
        "vector": vector_text(meant.vector.tolist()) if meant else None,
        "floor": 1 - meant.model.embedder.default_distance if meant else None,
        "often": OFTEN,
        "always": ALWAYS,
        "limit": limit,
    }
    cursor = await connection.execute(_GIVEN, parameters)
    return [GivenLesson(*row) for row in await cursor.fetchall()]


def _parameters(where: LessonFilter, brain: BrainId | None) -> dict[str, Any]:
    return {
        "brain": brain,
        "id": where.id,
        "core": where.core if where.core is None else storable(where.core),
        "user": where.user if where.user is None else storable(where.user),
        "state": where.state,
        "older": where.older_than_days,
        "unused": where.unused,
        "new": where.new,
        "words": storable(where.text).split(),
    }


def _lesson(row: Sequence[Any]) -> Lesson:
    return Lesson(
        id=row[0],
        brain=BrainId(row[1]),
        core=row[2],
        user=row[3],
        text=row[4],
        state=LessonState(row[5]),
        created_at=row[6],
        created_by=row[7],
        expires_at=row[8],
        last_used_at=row[9],
        uses=row[10],
        reinforced=row[11],
        pinned=row[12],
        sources=row[13],
        new=row[14],
        edited_at=row[15],
        deleted_at=row[16],
        deleted_by=row[17],
        reason=row[18],
    )


async def texts(connection: AsyncConnection, brain: BrainId, ids: Sequence[int]) -> list[str]:
    """What lessons of the brain say."""
    cursor = await connection.execute(
        "SELECT text FROM lesson WHERE brain = %s AND id = ANY(%s)", (brain, list(ids))
    )
    return [row[0] for row in await cursor.fetchall()]
