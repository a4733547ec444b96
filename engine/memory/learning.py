"""A rule becomes a lesson: a new one, or more strength to one that says the same, or nothing where a person
had deleted its like.

Judged and written in one transaction that holds the brain's lessons, so that two at once make one lesson.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.memory import lesson_changes as changes
from engine.memory.likeness import same
from engine.memory.model import ClusterState
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.memory.lesson_changes import Doing
    from engine.memory.meaning import Meant
    from engine.memory.model import BrainId

NEAREST = 20
"""Lessons nearest in meaning that are looked at."""

_NEAREST = """
    SELECT lesson.id, lesson.text, lesson.deleted_at IS NOT NULL, lesson.reason,
        known.vector <=> %(vector)s::halfvec AS distance
    FROM lesson_embedding AS known JOIN lesson ON lesson.brain = known.brain AND lesson.id = known.lesson
    WHERE known.model = %(model)s AND known.brain = %(brain)s AND known.state = 'embedded'
    ORDER BY distance, lesson.id LIMIT %(limit)s
"""

_UNKNOWN = """
    SELECT lesson.id, lesson.text, lesson.deleted_at IS NOT NULL, lesson.reason, NULL
    FROM lesson WHERE lesson.brain = %(brain)s
        AND NOT EXISTS (SELECT FROM lesson_embedding AS known WHERE known.model = %(model)s
            AND known.brain = lesson.brain AND known.lesson = lesson.id AND known.state = 'embedded')
    ORDER BY lesson.id
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that was distilled: its text (cleaned), what it means, and the packets it came from."""

    text: str
    meant: Meant | None
    packets: Sequence[int]
    run: int | None


@dataclass(frozen=True, slots=True)
class Learnt:
    """What became of a rule."""

    state: ClusterState
    lesson: int
    note: str = ""


async def learn(
    connection: AsyncConnection, brain: BrainId, rule: Rule, doing: Doing, models: Sequence[int]
) -> Learnt:
    """Write the rule as a lesson, or let it strengthen its like. `models` have its vector to make."""
    await changes.lock(connection, brain)
    for lesson, deleted, reason in await _alike(connection, brain, rule):
        if deleted:
            why = f" ({reason})" if reason else ""
            return Learnt(ClusterState.TOMBSTONED, lesson, f"Its like, L{lesson}, was deleted{why}.")
        await changes.change(connection, brain, changes.Change.STRENGTHEN, [lesson], doing)
        await changes.add_sources(connection, brain, lesson, rule.packets)
        return Learnt(ClusterState.STRENGTHENED, lesson, f"L{lesson} says the same.")
    lesson = await changes.create(connection, brain, rule.text, rule.run, doing)
    await changes.add_sources(connection, brain, lesson, rule.packets)
    await changes.keep_vectors(connection, brain, lesson, rule.text, rule.meant, models=models)
    return Learnt(ClusterState.CREATED, lesson)


async def _alike(connection: AsyncConnection, brain: BrainId, rule: Rule) -> list[tuple[int, bool, str]]:
    """Lessons that say the same, the nearest first: (id, whether it was deleted, why)."""
    meant = rule.meant
    parameters: dict[str, object] = {
        "brain": brain,
        "model": meant.model.id if meant else None,
        "limit": NEAREST,
    }
    rows = await (await connection.execute(_UNKNOWN, parameters)).fetchall()
    scale, reads = 1.0, 1.0
    if meant is not None:
        scale, reads = meant.model.embedder.unrelated_distance, meant.model.embedder.reads(rule.text)
        parameters["vector"] = vector_text(meant.vector.tolist())
        rows = await (await connection.execute(_NEAREST, parameters)).fetchall() + rows
    return [
        (lesson, deleted, reason)
        for lesson, text, deleted, reason, distance in rows
        if same(rule.text, text, None if distance is None else 1 - distance / scale, reads=reads)
    ]
