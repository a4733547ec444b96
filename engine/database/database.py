"""The database as the rest of the engine uses it: a pool, transactions, locks and the change feed.

The driver is imported when a database is opened and not before: the first paint does not wait.
"""

from __future__ import annotations

import asyncio
import importlib
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakSet

from engine.database.model import DatabaseInfo, OnState, silent, without_repeats

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from psycopg_pool import AsyncConnectionPool

    from engine.database.address import Address
    from engine.database.connecting import Connection
    from engine.database.embedded.server import EmbeddedServer
    from engine.database.feed import Feed
    from engine.database.locks import SessionLock
    from engine.settings import Settings


class Database:
    """An open database. Made by `open`, given back by `close`."""

    def __init__(
        self,
        address: Address,
        info: DatabaseInfo,
        application: str,
        server: EmbeddedServer | None,
        pool: AsyncConnectionPool[Connection],
    ) -> None:
        from engine.database.feed import Feed

        self.info = info
        self._address = address
        self.application = application
        """The name of this process among the server's sessions."""
        self._server = server
        self._pool = pool
        self._locks: WeakSet[SessionLock] = WeakSet()
        self._closing = AsyncExitStack()
        self.feed: Feed = Feed(self._connect_again)

    @classmethod
    async def open(cls, settings: Settings, *, application: str, on_state: OnState | None = None) -> Database:
        """Start or join the embedded server, or connect to `DATABASE_URL`; check it and migrate it.

        Args:
            settings: where the server is (`database_url`, or `paths.data` for the embedded one).
            application: the name this process has in the server's list of sessions.
            on_state: told in short sentences what a slow opening is doing.

        Raises:
            DatabaseUnavailable: no answer.
            DatabaseRefused: not a server that can be used.
            SchemaError: the schema is newer than this program, or was altered.
        """
        # In a thread: the loop has a screen to paint while the driver is loaded.
        await asyncio.to_thread(importlib.import_module, "engine.database.opening")
        from engine.database.opening import open_pool, prepare, reach

        tell = without_repeats(on_state or silent)
        async with AsyncExitStack() as stack:
            tell("opening the database")
            address, server = await reach(settings, tell, stack)
            address, info = await prepare(address, application, tell)
            pool = await open_pool(address, application, stack)
            database = cls(address, info, application, server, pool)
            stack.push_async_callback(database._release_locks)
            stack.push_async_callback(database.feed.close)
            await database.feed.start()
            database._closing = stack.pop_all()
        return database

    async def close(self) -> None:
        """Give everything back; the last user of the embedded server stops it. May be called twice."""
        await self._closing.aclose()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection of the pool: autocommit, as the engine role.

        Raises:
            DatabaseUnavailable: the server is away, or every connection is in use for too long.
        """
        from engine.database.opening import borrow

        async with borrow(self._pool, self._address) as connection:
            yield connection

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction: all of it, or nothing.

        Raises:
            DatabaseUnavailable: as for `connection`.
        """
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def try_lock(self, name: str) -> SessionLock | None:
        """The lock `name` for this process, or None while another session holds it.

        Raises:
            DatabaseUnavailable: the server is away.
        """
        from engine.database.locks import is_held, try_take

        async with self.connection() as connection:
            if await is_held(name, connection):
                return None
        lock = await try_take(name, await self._connect(f"{self.application} lock"))
        if lock:
            self._locks.add(lock)
        return lock

    async def _connect(self, application: str) -> Connection:
        from engine.database.connecting import connect

        return await connect(self._address, self._address.engine(application))

    async def _connect_again(self) -> Connection:
        """For the feed, which notices first that a server died: the embedded one is started again."""
        if self._server:
            await self._server.revive()
        return await self._connect(f"{self.application} feed")

    async def _release_locks(self) -> None:
        for lock in tuple(self._locks):
            await lock.release()
