"""Counts that cost: read again only after they were paid for, so that watching does not slow the work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

from engine.notes.model import IndexCounts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from psycopg import AsyncConnection

T = TypeVar("T")

PATIENCE = 30
"""For how many times as long as reading it took a value is kept: a thirtieth of the time goes into it."""


class Tally(Generic[T]):
    """A value read from the database, kept for a while in proportion to what reading it cost."""

    def __init__(self, read: Callable[[AsyncConnection], Awaitable[T]]) -> None:
        self._read = read
        self._value: T | None = None
        self._until = 0.0

    async def get(self, connection: AsyncConnection, *, exact: bool) -> T:
        """The value; with `exact` as it is now, otherwise perhaps a moment old."""
        start = time.monotonic()
        if self._value is not None and not exact and start < self._until:
            return self._value
        value = self._value = await self._read(connection)
        end = time.monotonic()
        self._until = end + PATIENCE * (end - start)
        return value


_INDEX_COUNTS = """
    SELECT (SELECT count(*) FROM folder), (SELECT count(*) FROM file), (SELECT count(*) FROM chunk),
        (SELECT count(*) FROM passage WHERE orphaned_at IS NULL)
"""


async def index_counts(connection: AsyncConnection) -> IndexCounts:
    """What the index holds now."""
    cursor = await connection.execute(_INDEX_COUNTS)
    return IndexCounts(*(await cursor.fetchone() or (0, 0, 0, 0)))
