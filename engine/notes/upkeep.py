"""Tidying that nobody waits for: lapsed leases, old jobs, small segments, texts long gone."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import psycopg

from engine.database.bulk import every
from engine.notes import jobs, traces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database

MANY_SEGMENTS = 48
"""Segments above which the small ones are merged: a search reads each term once a segment."""

SMALL_SEGMENT = 20_000
"""Passages up to which a segment counts as small; the large ones are merged when they are many too."""

KEEP_ORPHANS = "7 days"
"""How long a passage that no file holds any more is kept: text that comes back needs no new vector."""

PURGE_SHARE = 0.05
"""Share of overdue passages from which on removing them pays at once; fewer wait a day for company."""

PURGE_PORTION = 500
"""Passages removed in one transaction, while which no note can be written."""

TERMS_PORTION, STORE_BYTES = 500, 256 * 1024
"""Posting lists (and their bytes) read or written at a time."""

Posting = tuple[str, int, bytes]
"""A row of the keyword index: term, segment, packed postings."""

_log = logging.getLogger("noctuary.upkeep")

_MERGE = """
    INSERT INTO posting (term, segment, data)
    SELECT term, %(into)s, string_agg(data, ''::bytea ORDER BY segment)
    FROM posting WHERE segment = ANY(%(merged)s) GROUP BY term
"""

# The passages in all are those of the segments: counting them would cost more than the rest.
_WORTH_IT = """
    SELECT count(*) > %(share)s * (SELECT coalesce(sum(passages), 0) FROM segment)
        OR min(orphaned_at) < now() - %(keep)s::interval - interval '1 day'
    FROM passage WHERE orphaned_at < now() - %(keep)s::interval
"""

# The clock was set back since: their time begins anew.
_OF_THE_FUTURE = "UPDATE passage SET orphaned_at = now() WHERE orphaned_at > now() + interval '1 day'"

_OVERDUE = """
    SELECT id, length, heading, text, format FROM passage WHERE orphaned_at < now() - %s::interval
        AND NOT EXISTS (SELECT FROM chunk WHERE chunk.passage = passage.id)
    ORDER BY format, id LIMIT %s
"""

_GONE = """
    DELETE FROM passage WHERE id = ANY(%s) AND orphaned_at IS NOT NULL
        AND NOT EXISTS (SELECT FROM chunk WHERE chunk.passage = passage.id)
"""

_THIN = """
    UPDATE posting SET data = thinned.data
    FROM unnest(%s::text[], %s::integer[], %s::bytea[]) AS thinned (term, segment, data)
    WHERE posting.term = thinned.term AND posting.segment = thinned.segment
"""

_DROP = """
    DELETE FROM posting USING unnest(%s::text[], %s::integer[]) AS empty (term, segment)
    WHERE posting.term = empty.term AND posting.segment = empty.segment
"""


async def once(database: Database) -> None:
    """One round of everything. Only one process tidies at a time; the others pass."""
    async with database.connection() as connection:
        await jobs.reclaim_lapsed(connection)
        await jobs.prune(connection)
        await traces.tidy(connection)
        if await jobs.waiting(connection):
            return  # a first indexing writes segments faster than it pays to merge them
    await purge(database)
    async with database.transaction() as connection:
        if await _may_tidy(connection):
            await merge_segments(connection)


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


async def purge(database: Database) -> int:
    """Remove passages that no file has held for KEEP_ORPHANS, with their vectors and postings.

    Nothing is done until they are many, or the first of them is overdue for a day. They go in portions,
    a transaction each, so that no writer waits long. Returns how many were removed.
    """
    async with database.connection() as connection:
        await connection.execute(_OF_THE_FUTURE)
        cursor = await connection.execute(_WORTH_IT, {"keep": KEEP_ORPHANS, "share": PURGE_SHARE})
        if await cursor.fetchone() != (True,):
            return 0
    removed = 0
    portion: int | None = None
    while portion != 0:
        portion = None  # and stays so when the portion is rolled back
        async with database.transaction() as connection:
            portion = await _purge_portion(connection) if await _may_tidy(connection) else 0
        removed += portion or 0
    if removed:
        _log.info("removed %d passages that no note has held for %s", removed, KEEP_ORPHANS)
    return removed


async def _purge_portion(connection: AsyncConnection) -> int:
    """Remove PURGE_PORTION passages. Most of the work is done before the writers are locked out: nobody
    else changes the postings of a passage, and segments are merged by who tidies alone.
    """
    cursor = await connection.execute(_OVERDUE, (KEEP_ORPHANS, PURGE_PORTION))
    overdue = await every(cursor)
    if not overdue:
        return 0
    lengths: dict[int, int] = {row[0]: row[1] for row in overdue}
    words = await asyncio.to_thread(_terms, overdue)
    thinned, left = await _thinned(connection, words, lengths)
    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('noctuary:index', 0))")
    cursor = await connection.execute(_GONE, (list(lengths),))
    if cursor.rowcount != len(lengths):
        raise psycopg.Rollback  # one of them was revived meanwhile: again, without it
    await _store(connection, thinned)
    for segment, passages in left.items():
        await connection.execute(
            "UPDATE segment SET passages = passages - %s, length = length - %s WHERE id = %s",
            (len(passages), sum(lengths[passage] for passage in passages), segment),
        )
    await connection.execute("DELETE FROM segment WHERE id = ANY(%s) AND passages <= 0", (list(left),))
    return len(lengths)


def _terms(passages: Sequence[tuple[Any, ...]]) -> list[str] | None:
    """The terms passages are posted under; None when an older program posted some of them otherwise."""
    from engine.notes import prepare
    from engine.text.tokens import terms

    if any(written != prepare.TERMS_FORMAT for *_, written in passages):
        return None
    return sorted({term for _, _, heading, text, _ in passages for term in terms(text) + terms(heading)})


async def _thinned(
    connection: AsyncConnection, words: Sequence[str] | None, gone: Mapping[int, int]
) -> tuple[list[Posting], dict[int, set[int]]]:
    """The posting lists that lose something, as they shall be, and the passages each segment loses."""
    thinned: list[Posting] = []
    left: dict[int, set[int]] = {}
    async for rows in _postings(connection, words):
        changed = await asyncio.to_thread(_without, rows, gone, left)
        thinned += changed
    return thinned, left


async def _postings(connection: AsyncConnection, words: Sequence[str] | None) -> AsyncIterator[list[Posting]]:
    """The postings of some terms, or all of them, in portions."""
    cursor = connection.cursor(binary=True)
    if words is not None:
        for start in range(0, len(words), TERMS_PORTION):
            await cursor.execute(
                "SELECT term, segment, data FROM posting WHERE term = ANY(%s)",
                (list(words[start : start + TERMS_PORTION]),),
            )
            yield await every(cursor)
        return
    after: tuple[str, int] = ("", 0)
    while True:
        await cursor.execute(
            "SELECT term, segment, data FROM posting WHERE (term, segment) > (%s, %s)"
            " ORDER BY term, segment LIMIT %s",
            (*after, TERMS_PORTION),
        )
        rows = await every(cursor)
        if not rows:
            return
        after = (rows[-1][0], rows[-1][1])
        yield rows


async def _store(connection: AsyncConnection, thinned: Sequence[Posting]) -> None:
    """Write posting lists, few enough at a time that the loop does not notice; empty ones go."""
    empty = [row for row in thinned if not row[2]]
    kept = [row for row in thinned if row[2]]
    for start in range(0, len(empty), TERMS_PORTION):
        part = empty[start : start + TERMS_PORTION]
        await connection.execute(_DROP, ([row[0] for row in part], [row[1] for row in part]))
    while kept:
        part, size = [], 0
        while kept and len(part) < TERMS_PORTION and size < STORE_BYTES:
            part.append(kept.pop())
            size += len(part[-1][2])
        await connection.execute(
            _THIN, ([row[0] for row in part], [row[1] for row in part], [row[2] for row in part])
        )


def _without(rows: Sequence[Posting], gone: Mapping[int, int], left: dict[int, set[int]]) -> list[Posting]:
    """The posting lists that lose something; notes in `left` which passages each segment loses."""
    import numpy as np

    from engine.text.ranking import POSTING

    removed = np.fromiter(gone, dtype=np.int32, count=len(gone))
    changed: list[Posting] = []
    for term, segment, data in rows:
        postings = np.frombuffer(data, dtype=POSTING)
        hit = np.isin(postings["passage"], removed)
        if hit.any():
            left.setdefault(segment, set()).update(postings["passage"][hit].tolist())
            changed.append((term, segment, postings[~hit].tobytes()))
    return changed
