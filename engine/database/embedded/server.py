"""The embedded server as its users see it: join it, revive it, leave it.

Two lock files beside the data folder count its users and let one at a time start or stop it: see
`Places.users` and `Places.lock`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from engine.database.address import Address
from engine.database.connecting import unavailable
from engine.database.embedded import process, starting
from engine.database.embedded.cluster import unusable
from engine.database.embedded.flock import FileLock, exclusive
from engine.database.embedded.places import Places
from engine.database.embedded.socketpath import SocketFolder
from engine.database.model import OnState, silent
from engine.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path


class EmbeddedServer:
    """One user of the server whose data lies in `data / "postgres"`."""

    def __init__(self, data: Path, *, on_state: OnState = silent) -> None:
        self._places = Places(data)
        self.folder = self._places.folder
        self._on_state = on_state
        self._user: FileLock | None = None
        self._socket: SocketFolder | None = None

    def address(self, database: str = starting.DATABASE) -> Address:
        """Where `database` of this server is. Only between `join` and `leave`."""
        if self._socket is None:
            raise DatabaseUnavailable(f"The database server of {self.folder} is not in use.")
        return Address.of_folder(str(self.folder), self._socket.host, database)

    async def join(self) -> None:
        """Count as a user, and start the server if nobody has.

        Raises:
            DatabaseUnavailable: it does not start.
            DatabaseRefused: the data folder cannot be used.
        """
        try:
            self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            async with self._alone():
                self._user = self._count_in()
                try:
                    await self._start()
                except BaseException:  # cancelled too: nobody is left counted as a user
                    self._abandon()
                    raise
        except OSError as error:
            raise unusable(self.folder, error) from error

    async def revive(self) -> None:
        """Start the server again if it died under its users.

        Raises:
            DatabaseUnavailable: it does not start.
        """
        try:
            async with self._alone():
                await starting.ensure_running(self._places, self._on_state)
        except OSError as error:
            raise unusable(self.folder, error) from error

    async def leave(self) -> None:
        """Stop counting as a user. The last one stops the server."""
        if self._user is None:
            return
        try:
            async with self._alone():
                if self._count_out():
                    await starting.stop(self._places, self._on_state)
        except OSError as error:  # the folder was removed: the server notices that by itself
            self._count_out()
            raise unusable(self.folder, error) from error

    def _alone(self) -> AbstractAsyncContextManager[None]:
        return exclusive(
            self._places.lock,
            lambda: self._on_state("waiting for another process to start or stop the database"),
        )

    async def _start(self) -> None:
        await starting.ensure_cluster(self._places, self._on_state)
        await starting.ensure_running(self._places, self._on_state)
        self._socket = SocketFolder(self.folder)
        address = self.address()
        try:
            await starting.ensure_database(address, self.address("postgres"))
        except psycopg.OperationalError as error:
            raise unavailable(address, error) from None

    def _abandon(self) -> None:
        """After a failed start: leave no server behind that nobody uses."""
        if self._count_out():
            process.interrupt(self.folder)

    def _count_in(self) -> FileLock:
        user = FileLock(self._places.users)
        if user.try_shared():
            return user
        user.release()
        # Ours take it alone only while they hold the start lock, as this process does now.
        raise DatabaseUnavailable(
            f"{self._places.users} is locked by another program.", remedy="`fuser` tells which one holds it."
        )

    def _count_out(self) -> bool:
        """Give up being a user; True when this was the last one."""
        if self._user is None:
            return False
        last = self._user.try_exclusive()
        self._user.release()
        self._user = None
        if self._socket:
            self._socket.close()
            self._socket = None
        return last
