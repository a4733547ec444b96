"""Passages the model could not embed: they are found by words, and wait for a human's retry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import RetryError
from engine.notes.model import FailedPassage, PassageId
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

_LIST = """
    SELECT embedding.passage, place.folder, place.path, place.line_start, place.line_end,
        coalesce(embedding.error, '')
    FROM embedding JOIN LATERAL (
        SELECT folder.path AS folder, file.path, chunk.line_start, chunk.line_end
        FROM chunk JOIN file ON file.id = chunk.file JOIN folder ON folder.id = file.folder
        WHERE chunk.passage = embedding.passage ORDER BY file.mtime_ns DESC, file.id, chunk.position LIMIT 1
    ) AS place ON true
    WHERE embedding.model = %(model)s AND embedding.state = 'failed'
        AND (%(text)s = ''
            OR position(lower(%(text)s) IN lower(place.path || ' ' || coalesce(embedding.error, ''))) > 0)
    ORDER BY place.folder, place.path, place.line_start, embedding.passage LIMIT %(limit)s
"""

_COUNT = """
    SELECT count(*) FROM embedding WHERE model = %s AND state = 'failed'
        AND EXISTS (SELECT FROM chunk WHERE chunk.passage = embedding.passage)
"""

_RETRY = """
    UPDATE embedding SET state = 'pending', error = NULL
    WHERE state = 'failed' AND (%(ids)s::bigint[] IS NULL OR passage = ANY(%(ids)s::bigint[]))
"""


async def listing(
    connection: AsyncConnection, model: int | None, *, text: str, limit: int
) -> list[FailedPassage]:
    """Each at the place where it stands, by path; `text` is looked for in the path and the error."""
    values = {"model": model, "text": spelt(text).replace("\0", ""), "limit": limit}
    cursor = await connection.execute(_LIST, values)
    return [
        FailedPassage(PassageId(row[0]), Path(row[1]), row[2], row[3], row[4], row[5])
        for row in await cursor.fetchall()
    ]


async def count(connection: AsyncConnection, model: int | None) -> int:
    """How many there are that stand in a file."""
    cursor = await connection.execute(_COUNT, (model,))
    row = await cursor.fetchone()
    return row[0] if row else 0


async def require_failed(connection: AsyncConnection, ids: Sequence[PassageId]) -> None:
    """Make sure that each of these is a passage the model could not embed.

    Raises:
        RetryError: some are not; it names every one of them.
    """
    cursor = await connection.execute(
        "SELECT passage FROM embedding WHERE state = 'failed' AND passage = ANY(%s)", (list(ids),)
    )
    known = {row[0] for row in await cursor.fetchall()}
    wrong = [
        f"The model did not fail on a passage {each}." for each in dict.fromkeys(ids) if each not in known
    ]
    if wrong:
        raise RetryError(" ".join(wrong), remedy="`noctuary jobs --status vectors` lists those it failed on.")


async def retry(connection: AsyncConnection, ids: Sequence[PassageId] | None = None) -> int:
    """Let the model try these again (None: all). Returns how many."""
    cursor = await connection.execute(_RETRY, {"ids": None if ids is None else list(ids)})
    return cursor.rowcount
