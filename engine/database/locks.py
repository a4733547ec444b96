"""Locks that live as long as a session: the server frees them the moment their holder is gone."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import psycopg

from engine.database.arrivals import arrivals
from engine.database.connecting import end

if TYPE_CHECKING:
    from engine.database.connecting import Connection

# One database may serve other programs too: the prefix keeps our names apart from theirs.
_TRY = "SELECT pg_try_advisory_lock(hashtextextended('noctuary lock ' || %s, 0))"

_RELEASE_SECONDS = 2.0

_log = logging.getLogger("noctuary.database")

# How the server lists an advisory lock: the key's upper and lower half.
_HELD = """
    WITH wanted AS (SELECT hashtextextended('noctuary lock ' || %s, 0) AS key)
    SELECT EXISTS (
        SELECT FROM wanted JOIN pg_locks AS held
            ON held.classid = ((key >> 32) & 4294967295)::oid AND held.objid = (key & 4294967295)::oid
        WHERE held.locktype = 'advisory' AND held.objsubid = 1 AND held.granted
            AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


class SessionLock:
    """A lock this process holds until `release`, or until its connection dies: then `lost` is set
    and another process may hold it.
    """

    def __init__(self, name: str, connection: Connection) -> None:
        self.name = name
        self.lost = asyncio.Event()
        self._connection = connection
        self._released = False
        self._watch = asyncio.create_task(self._notice(), name=f"lock {name}")

    async def release(self) -> None:
        """Let it go. Releasing again, or after the loss, does nothing."""
        self._released = True
        await end(self._watch)
        # A closed connection's locks go when the server notices; one that is let go is free at once.
        with suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._connection.execute("SELECT pg_advisory_unlock_all()")
        await self._connection.close()

    async def _notice(self) -> None:
        """Nothing ever arrives on this connection but its end, in whichever way it comes.

        A lock that nobody watches any more may be another's tomorrow: that counts as lost too.
        """
        try:
            async for _ in arrivals(self._connection):
                pass
        except (psycopg.Error, OSError) as error:
            _log.warning("the lock %s lost its connection: %s", self.name, " ".join(str(error).split()))
        finally:
            if not self._released:
                self.lost.set()


async def try_take(name: str, connection: Connection) -> SessionLock | None:
    """The lock `name` on `connection`, which is closed if another session holds it."""
    taken = False
    try:
        row = await (await connection.execute(_TRY, [name])).fetchone()
        taken = row == (True,)
    finally:
        if not taken:
            await connection.close()
    return SessionLock(name, connection) if taken else None


async def is_held(name: str, connection: Connection) -> bool:
    """Whether any session holds the lock `name` now: who stands by need not connect anew to see it."""
    cursor = await connection.execute(_HELD, [name])
    return await cursor.fetchone() == (True,)
