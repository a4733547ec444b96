"""Traces: what was asked of the notes, through which door, and what came of it.

They are kept beside the answer's way: noting one is an append to a list, which is written in the background,
and losing some when the database is away costs nobody an answer. The query is the user's own text, kept in
the user's own database and nowhere else: never in a log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.errors import DatabaseError
from engine.notes.traced import Trace, TraceKind

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.notes.model import SearchResult

WAIT = 0.25
"""Seconds from a trace to its writing, so that those of a flood are written together."""

TYPING = 3.0
"""Seconds a search as one types waits for the next letter; what continues it takes its place."""

HELD = 5_000
"""Traces held while the database is away; the oldest go first."""

KEPT, KEPT_DAYS = 10_000, 90
"""Rows kept, and for how long."""

LONGEST_QUERY = 2_000
"""Characters of a query that are kept."""

_ADD = """
    INSERT INTO trace (at, kind, door, query, citations, seconds, answered, prompt_version, provider, model,
        prompt_tokens, completion_tokens, trouble)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""

_RECENT = """
    SELECT kind, door, query, citations, seconds, answered, prompt_version, provider, model, prompt_tokens,
        completion_tokens, trouble, at, id
    FROM trace WHERE %(kind)s::text IS NULL OR kind = %(kind)s ORDER BY id DESC LIMIT %(limit)s
"""

_TIDY = """
    DELETE FROM trace WHERE at < now() - make_interval(days => %s)
        OR id <= (SELECT max(id) - %s FROM trace)
"""

_log = logging.getLogger("noctuary.traces")


class Traces:
    """The traces of one process, which asks through `door`. Without `keep` none is kept."""

    def __init__(self, database: Database, door: str, *, keep: bool = True) -> None:
        self.door = door
        self._database = database
        self._keep = keep
        self._held: deque[Trace] = deque(maxlen=HELD)
        self._typed: Trace | None = None
        self._typed_at = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._warned = False

    def note(self, trace: Trace) -> None:
        """Keep a trace. Never waits, never fails."""
        if self._keep:
            self._settle()
            self._hold(trace)

    def searched(self, result: SearchResult, *, typing: bool = False) -> None:
        """Keep the trace of a search. One made while typing gives way to the one that continues it."""
        if not self._keep:
            return
        trace = Trace(
            TraceKind.SEARCH,
            self.door,
            result.query,
            len(result.citations),
            result.seconds,
            answered=bool(result.citations),
        )
        if not self._continues(result.query):
            self._settle()
        if not typing:
            self._typed = None
            self._hold(trace)
            return
        self._typed, self._typed_at = _now(trace), time.monotonic()
        self._write_soon()

    async def recent(self, limit: int = 50, kind: TraceKind | None = None) -> list[Trace]:
        """The newest traces, newest first."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(_RECENT, {"kind": kind and str(kind), "limit": limit})
            rows = await cursor.fetchall()
        return [Trace(TraceKind(row[0]), *row[1:]) for row in rows]

    async def close(self) -> None:
        """Write what is held."""
        self._settle()
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        await self._write()

    def _continues(self, query: str) -> bool:
        """Whether a query goes on from the one that was typed last, or back to it."""
        before = self._typed
        if before is None or time.monotonic() - self._typed_at > TYPING:
            return False
        one, other = before.query.strip(), query.strip()
        return one.startswith(other) or other.startswith(one)

    def _settle(self) -> None:
        """Nothing continues what was typed last any more."""
        typed, self._typed = self._typed, None
        if typed is not None:
            self._hold(typed)

    def _hold(self, trace: Trace) -> None:
        self._held.append(_now(trace))
        self._write_soon()

    def _write_soon(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._follow(), name="noctuary-traces")

    async def _follow(self) -> None:
        while self._held or self._typed is not None:
            await asyncio.sleep(WAIT)
            if self._typed is not None and time.monotonic() - self._typed_at > TYPING:
                self._settle()
            await self._write()

    async def _write(self) -> None:
        """Write what is held. While the database is away it goes: it is of no worth to who waits for it."""
        import psycopg

        if not self._held:
            return
        rows = [_row(trace) for trace in self._held]
        self._held.clear()
        try:
            async with self._database.transaction() as connection, connection.cursor() as cursor:
                await cursor.executemany(_ADD, rows)
        except (DatabaseError, psycopg.Error) as error:
            if not self._warned:  # one of them tells it all
                self._warned = True
                _log.warning("Traces are not kept while the database does not take them: %s", error)
        else:
            self._warned = False


async def tidy(connection: AsyncConnection) -> None:
    """Remove the oldest traces."""
    await connection.execute(_TIDY, (KEPT_DAYS, KEPT))


def _now(trace: Trace) -> Trace:
    return trace if trace.at is not None else replace(trace, at=datetime.now(UTC))


def _row(trace: Trace) -> tuple[object, ...]:
    return (
        trace.at,
        str(trace.kind),
        trace.door,
        trace.query[:LONGEST_QUERY].replace("\0", " ").encode("utf-8", "replace").decode(),
        trace.citations,
        trace.seconds,
        trace.answered,
        trace.prompt_version,
        trace.provider,
        trace.model,
        trace.prompt_tokens,
        trace.completion_tokens,
        trace.trouble,
    )
