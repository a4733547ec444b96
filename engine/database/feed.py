"""What changed, in any process, as an async iterator: one listening connection per process.

Nothing else is ever executed on that connection: a statement would swallow notifications.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Self
from weakref import WeakSet

import psycopg

from engine.database.arrivals import arrivals
from engine.database.connecting import end
from engine.database.model import LOST, RECONNECTED, Change
from engine.errors import DatabaseError

if TYPE_CHECKING:
    from engine.database.connecting import Connection

CHANNEL = "noctuary"

_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0
_log = logging.getLogger("noctuary.database")


class Subscription(AsyncIterator[Change]):
    """The changes of some topics from now on. A topic that changes again before it was read is told
    once: a subscriber that is slow falls behind in nothing but time.
    """

    def __init__(self, topics: frozenset[str]) -> None:
        self._topics = topics
        self._waiting: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._ended = False

    def tell(self, topic: str) -> None:
        """Note a change; for topics that were not asked for, nothing happens."""
        if self._ended:
            return
        everything = not self._topics and topic != LOST  # who reads rows then would only meet the failure
        if topic == RECONNECTED or everything or topic in self._topics:
            self._waiting[topic] = None
            self._wake.set()

    def end(self) -> None:
        """After what is waiting was read, the iteration stops."""
        self._ended = True
        self._wake.set()

    async def aclose(self) -> None:
        """Stop at once, like an async generator."""
        self._waiting.clear()
        self.end()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._ended:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        topic = next(iter(self._waiting))
        del self._waiting[topic]
        return Change(topic)


class Feed:
    """Hands the notifications of the database to its subscribers, and survives the server's death."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]]) -> None:
        """`connect` gives a new connection to listen on, and starts the server if it has to."""
        self._connect = connect
        self._subscriptions: WeakSet[Subscription] = WeakSet()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, *topics: str) -> Subscription:
        """Changes of the tables `topics` (none: of all) from this call on.

        After a lost connection came back, every subscriber gets `Change("reconnected")`: read anew. Who asks
        for "lost" is told when it is lost.
        """
        subscription = Subscription(frozenset(topics))
        self._subscriptions.add(subscription)
        return subscription

    async def start(self) -> None:
        """Listen from here on; returns when the server confirmed it.

        Raises:
            DatabaseUnavailable: there is no connection to be had.
        """
        self._connection = await self._listening()
        self._task = asyncio.create_task(self._run(self._connection), name="change feed")

    async def close(self) -> None:
        """Stop listening and end every subscription."""
        if self._task:
            await end(self._task)
        if self._connection:  # the task may have been cancelled before it ever ran
            await self._connection.close()
        for subscription in tuple(self._subscriptions):
            subscription.end()

    def tell(self, topic: str) -> None:
        """Tell the subscribers of a change."""
        for subscription in tuple(self._subscriptions):
            subscription.tell(topic)

    async def _run(self, connection: Connection) -> None:
        while True:
            try:
                async for payload in arrivals(connection):
                    self.tell(payload)
            except psycopg.Error as error:
                _log.warning("the change feed lost its connection: %s", " ".join(str(error).split()))
            self.tell(LOST)
            await connection.close()
            connection = self._connection = await self._return()
            self.tell(RECONNECTED)

    async def _return(self) -> Connection:
        """A new listening connection, however long the server is away."""
        delay = _FIRST_DELAY
        while True:
            try:
                connection = await self._listening()
            except (DatabaseError, psycopg.Error) as error:
                _log.warning("the database is away: %s", error)
            else:
                return connection
            # Many programs lose one server at once; they shall not all come back at once.
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            delay = min(delay * 2, _LONGEST_DELAY)

    async def _listening(self) -> Connection:
        connection = await self._connect()
        try:
            await connection.execute(f"LISTEN {CHANNEL}")
        except BaseException:  # cancelled too: nobody else would close it
            await connection.close()
            raise
        return connection
