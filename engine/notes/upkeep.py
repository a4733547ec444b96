"""Tidying that nobody waits for: lapsed leases, old jobs, small segments, texts long gone."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from engine.notes import jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.database import Database

MANY_SEGMENTS = 48
"""Segments above which the small ones are merged: a search reads each term once a segment."""

SMALL_SEGMENT = 20_000
"""Passages up to which a segment counts as small; the large ones are merged when they are many too."""

KEEP_ORPHANS = "7 days"
"""How long a passage that no file holds any more is kept: text that comes back needs no new vector."""

_log = logging.getLogger("noctuary.upkeep")

_MERGE = """
    INSERT INTO posting (term, segment, data)
    SELECT term, %(into)s, string_agg(data, ''::bytea ORDER BY segment)
    FROM posting WHERE segment = ANY(%(merged)s) GROUP BY term
"""

_GONE = """
    DELETE FROM passage WHERE orphaned_at < now() - %s::interval
        AND NOT EXISTS (SELECT FROM chunk WHERE chunk.passage = passage.id)
    RETURNING id, length
"""


async def once(database: Database) -> None:
    """One round of everything. Only one process tidies at a time; the others pass."""
    async with database.connection() as connection:
        await jobs.reclaim_lapsed(connection)
        await jobs.prune(connection)
        if await jobs.waiting(connection):
            return  # a first indexing writes segments faster than it pays to merge them
    # Each in a transaction of its own: merging takes long, and purging locks writers out.
    for tidy in (purge, merge_segments):
        async with database.transaction() as connection:
            if await _may_tidy(connection):
                await tidy(connection)


async def _may_tidy(connection: AsyncConnection) -> bool:
    cursor = await connection.execute(
        "SELECT pg_try_advisory_xact_lock(hashtextextended('noctuary:upkeep', 0))"
    )
    row = await cursor.fetchone()
    return bool(row and row[0])


async def merge_segments(connection: AsyncConnection) -> int:
    """Merge segments when they are many. Returns how many were merged away.

    Writers add segments meanwhile and are not disturbed; a search sees the old ones or the new one.
    """
    cursor = await connection.execute("SELECT id, passages FROM segment ORDER BY passages")
    segments = await cursor.fetchall()
    small = [row[0] for row in segments if row[1] <= SMALL_SEGMENT]
    chosen = small if len(small) > MANY_SEGMENTS else [row[0] for row in segments]
    if len(segments) <= MANY_SEGMENTS or len(chosen) <= 1:
        return 0
    await _replace(connection, chosen)
    _log.info("merged %d segments of the keyword index", len(chosen))
    return len(chosen) - 1


async def _replace(connection: AsyncConnection, merged: Sequence[int]) -> None:
    cursor = await connection.execute(
        "INSERT INTO segment (passages, length) SELECT sum(passages), sum(length) FROM segment"
        " WHERE id = ANY(%s) RETURNING id",
        (list(merged),),
    )
    row = await cursor.fetchone()
    await connection.execute(_MERGE, {"into": row[0] if row else None, "merged": list(merged)})
    await connection.execute("DELETE FROM posting WHERE segment = ANY(%s)", (list(merged),))
    await connection.execute("DELETE FROM segment WHERE id = ANY(%s)", (list(merged),))


async def purge(connection: AsyncConnection) -> int:
    """Remove passages that no file has held for KEEP_ORPHANS, with their vectors and postings.

    Returns how many. The index lock keeps a writer from reviving one of them meanwhile.
    """
    cursor = await connection.execute(
        "SELECT EXISTS (SELECT FROM passage WHERE orphaned_at < now() - %s::interval)", (KEEP_ORPHANS,)
    )
    row = await cursor.fetchone()
    if not row or not row[0]:
        return 0
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('noctuary:index', 0))")
    cursor = await connection.execute(_GONE, (KEEP_ORPHANS,))
    gone: dict[int, int] = dict(await cursor.fetchall())
    cursor = await connection.execute("SELECT id FROM segment ORDER BY id")
    for (segment,) in await cursor.fetchall():
        await _thin(connection, segment, gone)
    _log.info("removed %d passages that no note has held for %s", len(gone), KEEP_ORPHANS)
    return len(gone)


async def _thin(connection: AsyncConnection, segment: int, gone: dict[int, int]) -> None:
    """Take removed passages out of one segment."""
    cursor = await connection.execute(
        "SELECT term, data FROM posting WHERE segment = %s", (segment,), binary=True
    )
    rows = await cursor.fetchall()
    changed, left = await asyncio.to_thread(_without, rows, gone)
    if not changed:
        return
    await connection.execute(
        "UPDATE posting SET data = thinned.data FROM unnest(%s::text[], %s::bytea[]) AS thinned (term, data)"
        " WHERE posting.segment = %s AND posting.term = thinned.term",
        ([term for term, _ in changed], [data for _, data in changed], segment),
    )
    await connection.execute("DELETE FROM posting WHERE segment = %s AND octet_length(data) = 0", (segment,))
    await connection.execute(
        "UPDATE segment SET passages = passages - %s, length = length - %s WHERE id = %s",
        (len(left), sum(gone[passage] for passage in left), segment),
    )
    await connection.execute("DELETE FROM segment WHERE id = %s AND passages <= 0", (segment,))


def _without(
    rows: Sequence[tuple[str, bytes]], gone: dict[int, int]
) -> tuple[list[tuple[str, bytes]], set[int]]:
    """The posting lists that lose something, as they shall be, and the passages they lose."""
    import numpy as np

    from engine.text.ranking import POSTING

    removed = np.fromiter(gone, dtype=np.int32, count=len(gone))
    changed: list[tuple[str, bytes]] = []
    left: set[int] = set()
    for term, data in rows:
        postings = np.frombuffer(data, dtype=POSTING)
        hit = np.isin(postings["passage"], removed)
        if hit.any():
            left.update(postings["passage"][hit].tolist())
            changed.append((term, postings[~hit].tobytes()))
    return changed, left
