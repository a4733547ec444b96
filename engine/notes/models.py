"""The embedding models an index knows: their rows, which of them is complete, and which was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.notes.model import ModelRow
from engine.text.safe import spelt

if TYPE_CHECKING:
    from datetime import datetime

    from psycopg import AsyncConnection

_COLUMNS = "SELECT id, name, provider, model, dimension, complete_at FROM model"

_BY_CHOICE = _COLUMNS + " WHERE provider = %s AND model = %s ORDER BY id DESC LIMIT 1"

_LAST_COMPLETE = _COLUMNS + " WHERE complete_at IS NOT NULL ORDER BY complete_at DESC, id DESC LIMIT 1"

_BY_ID = _COLUMNS + " WHERE id = %s"

# A model that could not read a passage has done with it all the same.
_COMPLETE = """
    UPDATE model SET complete_at = now() WHERE id = %(model)s AND complete_at IS NULL
        AND EXISTS (SELECT FROM passage WHERE orphaned_at IS NULL)
        AND NOT EXISTS (
            SELECT FROM passage WHERE orphaned_at IS NULL AND NOT EXISTS (
                SELECT FROM embedding WHERE embedding.model = %(model)s AND embedding.passage = passage.id
                    AND embedding.state <> 'pending'))
"""

# Notes that came while another model was in use wait for their vectors: until they have them, that one
# goes on answering.
_REOPEN = """
    UPDATE model SET complete_at = NULL WHERE id = %(model)s
        AND EXISTS (SELECT FROM model AS other WHERE other.complete_at IS NOT NULL AND other.id <> %(model)s)
        AND EXISTS (
            SELECT FROM passage WHERE orphaned_at IS NULL AND NOT EXISTS (
                SELECT FROM embedding WHERE embedding.model = %(model)s AND embedding.passage = passage.id
                    AND embedding.state <> 'pending'))
"""

_CHOOSE = """
    INSERT INTO chosen_model (provider, model) VALUES (%s, %s)
    ON CONFLICT (single) DO UPDATE
        SET provider = EXCLUDED.provider, model = EXCLUDED.model, chosen_at = now()
"""

# What came while another model was in use was never queued for this one: it waits for a vector all the same.
_LIST = """
    SELECT model.name, model.provider, model.model, model.dimension, model.complete_at,
        count(*) FILTER (WHERE embedding.state = 'embedded'),
        (SELECT count(*) FROM passage WHERE orphaned_at IS NULL)
            - count(*) FILTER (WHERE embedding.state IN ('embedded', 'failed')),
        count(*) FILTER (WHERE embedding.state = 'failed'),
        model.id = %(making)s, model.id = %(answers)s
    FROM model LEFT JOIN embedding ON embedding.model = model.id
        AND EXISTS (SELECT FROM passage WHERE passage.id = embedding.passage AND passage.orphaned_at IS NULL)
    GROUP BY model.id ORDER BY model.id
"""


@dataclass(frozen=True, slots=True)
class Known:
    """A model the index has vectors of, or waits for. `complete_at` is when it first had them all."""

    id: int
    name: str
    provider: str
    model: str
    dimension: int
    complete_at: datetime | None


async def latest(connection: AsyncConnection, provider: str, model: str) -> Known | None:
    """The newest version of a provider's model that the index knows."""
    return await _one(connection, _BY_CHOICE, (provider, model))


async def by_id(connection: AsyncConnection, identity: int) -> Known | None:
    """The model of an id."""
    return await _one(connection, _BY_ID, (identity,))


async def last_complete(connection: AsyncConnection) -> Known | None:
    """The model that had all its vectors most recently."""
    return await _one(connection, _LAST_COMPLETE, ())


async def _one(connection: AsyncConnection, statement: str, values: tuple[object, ...]) -> Known | None:
    cursor = await connection.execute(statement.encode(), values)
    row = await cursor.fetchone()
    return Known(*row) if row else None


async def register(
    connection: AsyncConnection, *, name: str, dimension: int, provider: str, model: str
) -> int:
    """Make a model known, with an index for its vectors. Returns its id.

    Raises:
        ModelError: the index knows a model of that name with another dimension, or cannot hold such long
            vectors.
    """
    from psycopg.errors import CheckViolation, DataException

    try:
        cursor = await connection.execute(
            "SELECT register_model(%s, %s, %s, %s)", (name, dimension, provider, model)
        )
    except CheckViolation as error:
        raise ModelError(
            f"The vectors of {name} have {dimension} numbers; the index holds up to 4,000.",
            remedy="Choose another model.",
        ) from error
    except DataException as error:
        raise ModelError(
            f"The database refuses the {error.diag.message_primary}.",
            remedy="A model of another dimension needs another name.",
        ) from error
    ((registered,),) = await cursor.fetchall()
    return int(registered)


async def distances(connection: AsyncConnection) -> dict[str, float]:
    """The default distances that were measured, by the models' names."""
    cursor = await connection.execute("SELECT name, distance FROM model WHERE distance IS NOT NULL")
    return dict(await cursor.fetchall())


async def remember_distance(connection: AsyncConnection, model: int, distance: float) -> None:
    """Keep a measured default distance, so that no other process measures it again."""
    await connection.execute(
        "UPDATE model SET distance = %(distance)s"
        " WHERE id = %(model)s AND distance IS DISTINCT FROM %(distance)s",
        {"model": model, "distance": distance},
    )


async def complete(connection: AsyncConnection, model: int) -> bool:
    """Mark the model as complete when no live passage waits for its vector. Returns whether it became so."""
    known = await by_id(connection, model)
    if known is None or known.complete_at is not None:
        return False  # the statement below looks through all passages, and this is asked again and again
    cursor = await connection.execute(_COMPLETE, {"model": model})
    return cursor.rowcount > 0


async def listing(connection: AsyncConnection, making: int, answers: int) -> list[ModelRow]:
    """All models the index knows, the first known first; `making` and `answers` are the ids of those two."""
    cursor = await connection.execute(_LIST, {"making": making, "answers": answers})
    return [ModelRow(*row) for row in await cursor.fetchall()]


async def named(connection: AsyncConnection, name: str) -> Known | None:
    """The model of a name."""
    return await _one(connection, _COLUMNS + " WHERE name = %s", (spelt(name),))


async def chosen(connection: AsyncConnection) -> tuple[str, str] | None:
    """(provider, model) as chosen for this index; None: nobody chose."""
    cursor = await connection.execute("SELECT provider, model FROM chosen_model")
    row = await cursor.fetchone()
    return (row[0], row[1]) if row else None


async def choose(connection: AsyncConnection, provider: str, model: str) -> None:
    """Choose a model for every process whose settings name none.

    It must be called in a transaction: one that the index knows already and that misses what came since
    counts as incomplete again.
    """
    known = await latest(connection, provider, model)
    if known is not None:
        await connection.execute(_REOPEN, {"model": known.id})
    await connection.execute(_CHOOSE, (provider, model))


async def forget(connection: AsyncConnection, model: int) -> None:
    """Remove a model with its vectors and their index."""
    await connection.execute("SELECT forget_model(%s::smallint)", (model,))
