"""One way to open a connection, with failures as sentences instead of driver errors."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg

from engine.database.model import OnState, silent
from engine.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from engine.database.address import Address, Params

Connection = psycopg.AsyncConnection[Any]

_RECOVERY_SECONDS = 600.0  # replaying a full disk's worth of WAL after a crash takes minutes
_CANCEL_AGAIN_SECONDS = 1.0
_LATER = ("starting up", "shutting down", "in recovery", "not yet accepting", "consistent recovery")


def later(error: psycopg.OperationalError) -> bool:
    """Whether the server lives and only asks to be called again.

    libpq gives no SQLSTATE for a refused connection, so its text has to do.
    """
    return any(phrase in str(error) for phrase in _LATER)


async def connect_raw(params: Params) -> Connection:
    """An autocommit connection.

    Raises:
        psycopg.OperationalError: the server is not there or refuses.
    """
    # The parameters are a plain dict, and psycopg's keyword arguments have no common type.
    keywords: dict[str, Any] = dict(params)
    return await psycopg.AsyncConnection.connect(autocommit=True, **keywords)


async def connect(address: Address, params: Params, *, on_state: OnState = silent) -> Connection:
    """An autocommit connection; a server that is starting up or recovering is waited for.

    Raises:
        DatabaseUnavailable: there is no answer, or the answer is no.
    """
    deadline = asyncio.get_running_loop().time() + _RECOVERY_SECONDS
    while True:
        try:
            return await connect_raw(params)
        except psycopg.OperationalError as error:
            if not later(error) or asyncio.get_running_loop().time() > deadline:
                raise unavailable(address, error) from None
        on_state("the database server is starting or recovering")
        await asyncio.sleep(0.25)


async def end(task: asyncio.Task[None]) -> None:
    """Cancel `task` until it has ended: libraries swallow a cancellation that meets another failure."""
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_SECONDS)


def unavailable(address: Address, error: Exception) -> DatabaseUnavailable:
    """The sentence for a connection that cannot be had or was lost."""
    reason = " ".join(address.scrub(str(error)).split()).rstrip(".?!")
    remedy = (
        "Start the program again; if it stays so, run `noctuary doctor`."
        if address.embedded
        else "Check that the server runs and that DATABASE_URL names it rightly."
    )
    return DatabaseUnavailable(f"The database at {address.where} cannot be reached: {reason}.", remedy=remedy)
