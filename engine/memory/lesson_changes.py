"""Lessons changed: each statement writes its row and its audit, within the lock of the brain's lessons.

What stands in the audit is the state before and after; an actor's name and a reason come from outside and are
made fit to be shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.errors import LessonError
from engine.memory.secrets import mask
from engine.text.safe import visible
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.memory.meaning import Meant
    from engine.memory.model import BrainId

LONGEST_LESSON = 2_000
"""Characters of a lesson that a person writes."""

LONGEST_RULE = 300
"""Characters of one that a machine writes: a rule is a sentence."""

LONGEST_ACTOR, LONGEST_REASON = 200, 1_000
"""Characters that are kept of who did it, and why."""

LARGEST_ID = 2**31 - 1

PORTION = 500
"""Lessons a statement. The planner knows nothing of what the statement itself makes and compares each with
each: twenty thousand at once took a minute.
"""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('noctuary:lessons ' || %s, 0))"

_STATE = """jsonb_build_object('text', lesson.text, 'pinned', lesson.pinned,
    'deleted', lesson.deleted_at IS NOT NULL, 'reinforced', lesson.reinforced,
    'expires_at', lesson.expires_at)"""

_CHANGE = """
    WITH chosen AS MATERIALIZED (
        SELECT lesson.id, {state} AS state FROM lesson
        WHERE lesson.brain = %(brain)s AND lesson.id = ANY(%(ids)s::integer[]) AND {when}
        ORDER BY lesson.id FOR UPDATE
    ), changed AS (
        UPDATE lesson SET {to} FROM chosen
        WHERE lesson.brain = %(brain)s AND lesson.id = chosen.id
        RETURNING lesson.id, {state} AS state
    )
    INSERT INTO memory_audit (brain, actor, action, lesson, before, after, reason)
    SELECT %(brain)s, %(actor)s, %(action)s, id, chosen.state, changed.state, %(reason)s
    FROM changed JOIN chosen USING (id) ORDER BY id
    RETURNING lesson
"""

_RENEWED = "expires_at = greatest(lesson.expires_at, now() + make_interval(days => %(days)s))"

# Only use renews a living lesson; one that had expired begins its days anew, as a new one would.
_REVIVED = """expires_at = CASE WHEN lesson.expires_at > now() THEN lesson.expires_at
    ELSE now() + make_interval(days => %(days)s) END"""


class Change(StrEnum):
    """What can be done to a lesson that is there."""

    DELETE = "delete"
    LIFT = "lift"
    PIN = "pin"
    UNPIN = "unpin"
    EDIT = "edit"
    STRENGTHEN = "strengthen"


_CHANGES = {
    change: _CHANGE.format(state=_STATE, when=when, to=to)
    for change, when, to in (
        (
            Change.DELETE,
            "lesson.deleted_at IS NULL",
            "deleted_at = now(), deleted_by = %(actor)s, reason = %(reason)s",
        ),
        (
            Change.LIFT,
            "lesson.deleted_at IS NOT NULL",
            f"deleted_at = NULL, deleted_by = NULL, reason = '', {_RENEWED}",
        ),
        (Change.PIN, "NOT lesson.pinned AND lesson.deleted_at IS NULL", "pinned = true"),
        (Change.UNPIN, "lesson.pinned AND lesson.deleted_at IS NULL", "pinned = false"),
        (
            Change.EDIT,
            "lesson.deleted_at IS NULL AND lesson.text <> %(text)s",
            "text = %(text)s, edited_at = now()",
        ),
        (
            Change.STRENGTHEN,
            "lesson.deleted_at IS NULL",
            f"reinforced = lesson.reinforced + 1, {_REVIVED}",
        ),
    )
}

_CREATE = f"""
    WITH made AS (
        INSERT INTO lesson (brain, text, created_by, run, expires_at)
        VALUES (%(brain)s, %(text)s, %(actor)s, %(run)s, now() + make_interval(days => %(days)s))
        RETURNING *
    )
    INSERT INTO memory_audit (brain, actor, action, lesson, after)
    SELECT %(brain)s, %(actor)s, 'create', lesson.id, {_STATE} FROM made AS lesson RETURNING lesson
"""

_SOURCES = """
    INSERT INTO lesson_source (brain, lesson, packet) SELECT %s, %s, unnest(%s::integer[])
    ON CONFLICT DO NOTHING
"""

_USED = """
    UPDATE lesson SET uses = uses + 1, last_used_at = greatest(last_used_at, now()),
        expires_at = greatest(expires_at, now() + make_interval(days => %(days)s))
    FROM (SELECT id FROM lesson WHERE brain = %(brain)s AND id = ANY(%(ids)s::integer[])
        AND deleted_at IS NULL ORDER BY id FOR UPDATE) AS held
    WHERE lesson.brain = %(brain)s AND lesson.id = held.id
"""

_FORGET_VECTORS = """
    UPDATE lesson_embedding SET state = 'pending', vector = NULL, error = NULL
    WHERE brain = %s AND lesson = %s
"""
_QUEUE = """
    INSERT INTO lesson_embedding (model, brain, lesson) SELECT unnest(%s::smallint[]), %s, %s
    ON CONFLICT DO NOTHING
"""
_KEEP_VECTOR = """
    INSERT INTO lesson_embedding (model, brain, lesson, state, vector)
    SELECT %(model)s, lesson.brain, lesson.id, 'embedded', %(vector)s::halfvec FROM lesson
    WHERE lesson.brain = %(brain)s AND lesson.id = %(lesson)s AND lesson.text = %(text)s
    ON CONFLICT (model, brain, lesson)
        DO UPDATE SET state = 'embedded', vector = excluded.vector, error = NULL
"""

_VECTORLESS = """
    SELECT lesson.id, lesson.text FROM lesson WHERE lesson.brain = %(brain)s
        AND NOT EXISTS (SELECT FROM lesson_embedding AS known WHERE known.model = %(model)s
            AND known.brain = lesson.brain AND known.lesson = lesson.id AND known.state = 'embedded')
    ORDER BY lesson.id
"""


@dataclass(frozen=True, slots=True)
class Doing:
    """A change: by whom, why, and how many days a lesson lives when it is renewed."""

    actor: str
    days: int
    reason: str = ""


def cleaned(text: str, longest: int = LONGEST_LESSON) -> str:
    """A lesson's text as it is kept: one line, without secrets, and nothing in it that steers a terminal.

    Raises:
        LessonError: there is none, or it is too long.
    """
    line = mask(visible(" ".join(text.split()), keep_newlines=False, keep_tabs=False)).text
    if not line:
        raise LessonError("A lesson has a text.", remedy="Write the rule in a sentence.")
    if len(line) > longest:
        raise LessonError(
            f"The lesson has {len(line):,} characters, and may have {longest:,}.",
            remedy="Write the rule in a sentence.",
        )
    return line


def shown(text: str, longest: int) -> str:
    """A name or reason from outside as it is kept, without secrets."""
    line = mask(" ".join(text.split())).text[:longest]
    return visible(line, keep_newlines=False, keep_tabs=False)


async def lock(connection: AsyncConnection, brain: BrainId) -> None:
    """Hold the brain's lessons until the transaction ends: nothing is learned twice, or over a deletion."""
    await connection.execute(_LOCK, (str(int(brain)),))


async def change(
    connection: AsyncConnection,
    brain: BrainId,
    what: Change,
    ids: Sequence[int],
    doing: Doing,
    *,
    text: str | None = None,
) -> list[int]:
    """Do it to those of the lessons it can be done to, each with its audit. Returns their ids."""
    parameters = {
        "brain": brain,
        "action": what,
        "actor": shown(doing.actor, LONGEST_ACTOR),
        "reason": shown(doing.reason, LONGEST_REASON),
        "days": doing.days,
        "text": text,
    }
    wanted, changed = sorted({each for each in ids if 0 < each <= LARGEST_ID}), []
    for start in range(0, len(wanted), PORTION):
        portion = {**parameters, "ids": wanted[start : start + PORTION]}
        cursor = await connection.execute(_CHANGES[what].encode(), portion)
        changed += [row[0] for row in await cursor.fetchall()]
    return changed


async def create(
    connection: AsyncConnection, brain: BrainId, text: str, run: int | None, doing: Doing
) -> int:
    """A new lesson, with its audit. Returns its id."""
    parameters = {
        "brain": brain,
        "text": text,
        "run": run,
        "actor": shown(doing.actor, LONGEST_ACTOR),
        "days": doing.days,
    }
    row = await (await connection.execute(_CREATE.encode(), parameters)).fetchone()
    assert row is not None  # noqa: S101 - an INSERT gives its row
    return int(row[0])


async def add_sources(
    connection: AsyncConnection, brain: BrainId, lesson: int, packets: Sequence[int]
) -> None:
    """Packets that the lesson came from as well."""
    await connection.execute(_SOURCES, (brain, lesson, list(packets)))


async def used(connection: AsyncConnection, brain: BrainId, ids: Sequence[int], days: int) -> None:
    """Count a use of the lessons, and begin their days anew."""
    if ids:
        await connection.execute(_USED, {"brain": brain, "ids": list(ids), "days": days})


async def keep_vectors(
    connection: AsyncConnection,
    brain: BrainId,
    lesson: int,
    text: str,
    meant: Meant | None,
    *,
    models: Sequence[int],
) -> None:
    """Keep what the lesson's text means to the model that answers; the other `models` have it to make."""
    await connection.execute(_FORGET_VECTORS, (brain, lesson))
    await connection.execute(_QUEUE, (list(models), brain, lesson))
    if meant is not None:
        await keep_vector(connection, brain, lesson, text, meant)


async def keep_vector(
    connection: AsyncConnection, brain: BrainId, lesson: int, text: str, meant: Meant
) -> None:
    """Keep what the lesson's text means to one model; of another text than it has nothing is kept."""
    parameters = {
        "model": meant.model.id,
        "brain": brain,
        "lesson": lesson,
        "text": text,
        "vector": vector_text(meant.vector.tolist()),
    }
    await connection.execute(_KEEP_VECTOR, parameters)


async def vectorless(connection: AsyncConnection, brain: BrainId, model: int) -> list[tuple[int, str]]:
    """Lessons of which the model has made no vector yet, deleted ones among them: (id, text)."""
    cursor = await connection.execute(_VECTORLESS, {"brain": brain, "model": model})
    return [(row[0], row[1]) for row in await cursor.fetchall()]
