"""The parts of opening a database that need the driver."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from engine.database.address import Address
from engine.database.embedded.server import EmbeddedServer
from engine.database.setup import prepare
from engine.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.database.connecting import Connection
    from engine.database.model import OnState
    from engine.settings import Settings

__all__ = ["borrow", "open_pool", "prepare", "reach"]

_SMALLEST, _LARGEST = 1, 8
_CHECKOUT_SECONDS = 15.0
# The pool gives a new connection up after this long and tries again when one is asked for: its own
# growing pauses would outlast the server's absence by minutes.
_RECONNECT_SECONDS = 3.0


async def reach(
    settings: Settings, on_state: OnState, stack: AsyncExitStack
) -> tuple[Address, EmbeddedServer | None]:
    """Where the database is; the embedded server is joined, and left when `stack` is closed."""
    if settings.database_url:
        return Address.of_url(settings.database_url), None
    server = EmbeddedServer(settings.paths.data, on_state=on_state)
    await server.join()
    stack.push_async_callback(server.leave)
    return server.address(), server


async def open_pool(
    address: Address, application: str, stack: AsyncExitStack
) -> AsyncConnectionPool[Connection]:
    """The one pool of this process; its connections are made in the background."""
    parameters: dict[str, Any] = dict(address.engine(application))
    # What it says of connections that broke goes to standard error as it is; who needed them tells.
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
        kwargs=parameters | {"autocommit": True},
        min_size=_SMALLEST,
        max_size=_LARGEST,
        open=False,
        name=application,
        timeout=_CHECKOUT_SECONDS,
        reconnect_timeout=_RECONNECT_SECONDS,
        num_workers=2,
    )
    await pool.open()
    stack.push_async_callback(pool.close)
    return pool


@asynccontextmanager
async def borrow(pool: AsyncConnectionPool[Connection], address: Address) -> AsyncIterator[Connection]:
    """A connection of `pool`; one that breaks in use is an error of our family."""
    try:
        connection = await _sound(pool)
    except PoolTimeout:
        raise DatabaseUnavailable(
            f"The database at {address.where} gave no connection for {_CHECKOUT_SECONDS:.0f} seconds.",
            remedy="It is away or overloaded; it is asked again.",
        ) from None
    except PoolClosed:
        raise DatabaseUnavailable(f"The database at {address.where} was closed.") from None
    try:
        yield connection
    except psycopg.Error as error:
        if connection.closed:
            raise _lost(address, error) from error
        raise
    finally:
        await pool.putconn(connection)


def _lost(address: Address, error: psycopg.Error) -> DatabaseUnavailable:
    reason = " ".join(address.scrub(str(error)).split()).rstrip(".?!")
    return DatabaseUnavailable(
        f"The database at {address.where} went away in the midst of the work: {reason}.",
        remedy="Try again; what runs in the background does so by itself.",
    )


async def _sound(pool: AsyncConnectionPool[Connection]) -> Connection:
    """A connection that answers. The pool's own check would sleep a second after a dead one."""
    task = asyncio.current_task()
    cancellations = task.cancelling() if task else 0
    while True:
        connection = await pool.getconn()
        if task and task.cancelling() > cancellations:
            # The pool waits with wait_for, which on Python 3.11 loses a cancellation that comes together
            # with the connection: a service would go on for ever after it was told to stop.
            await pool.putconn(connection)
            raise asyncio.CancelledError
        try:
            await AsyncConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            await pool.putconn(connection)  # which discards it and makes another
        except BaseException:  # cancelled too: it would be lost to the pool
            await pool.putconn(connection)
            raise
        else:
            return connection
