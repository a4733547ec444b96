"""Entering a brain: the scope of one transaction, and the cores of an account.

Row-level security shows a transaction the rows of the brain it entered and no others; one that entered none
sees nothing. The key's parts reach the database as parameters and are compared byte by byte there.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.errors import BrainError, CoreUnknown
from engine.memory.model import LOCAL, LONGEST_KEY, BrainId, BrainKey, Core

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from psycopg import AsyncConnection

    from engine.database import Database

SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

_ENTER = "SELECT enter_brain(%s, %s, %s, %s)"
_ENTER_BY_ID = "SELECT set_config('noctuary.brain', %s, true)"
_EVERYTHING = "SELECT set_config('noctuary.brain', '*', true)"
_AS_ACCOUNT = "SELECT set_config('noctuary.account', %s, true)"
_CORES = "SELECT slug, name, is_default FROM core WHERE account = %s ORDER BY NOT is_default, slug"
_ADD = "SELECT add_core(%s, %s, %s)"


def checked(key: BrainKey) -> BrainKey:
    """The same key.

    Raises:
        BrainError: a part of it cannot be the name of anything.
    """
    for what, part in (("account", key.account), ("core", key.core), ("end user", key.user)):
        if part is not None and ("\0" in part or len(part) > LONGEST_KEY or not _storable(part)):
            raise BrainError(
                f"The {what} cannot be named like that.",
                remedy=f"A name has at most {LONGEST_KEY} characters, and no NUL among them.",
            )
    if not key.account:
        raise BrainError("The account has no name.")
    return key


def _storable(text: str) -> bool:
    """Whether it has no half of a surrogate pair, which UTF-8 does not write."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@asynccontextmanager
async def entered(
    database: Database, key: BrainKey, *, make: bool = False
) -> AsyncIterator[tuple[AsyncConnection, BrainId]]:
    """One transaction inside the brain of a whole key. Its id is 0 where it has no rows yet, unless `make`.

    Raises:
        CoreUnknown: the account has no such core.
        BrainError: the key is none.
    """
    checked(key)
    async with database.transaction() as connection:
        cursor = await connection.execute(_ENTER, (key.account, key.core, key.user, make))
        row = await cursor.fetchone()
        if row is None or row[0] is None:
            raise _unknown(key)
        yield connection, BrainId(row[0])


@asynccontextmanager
async def entered_by_id(database: Database, brain: BrainId) -> AsyncIterator[AsyncConnection]:
    """One transaction inside a brain that a row named: the console's and the background's way."""
    async with database.transaction() as connection:
        await go_into(connection, brain)
        yield connection


@asynccontextmanager
async def everything(database: Database) -> AsyncIterator[AsyncConnection]:
    """One transaction of the person who owns all brains: it reads every one of them and writes to none."""
    async with database.transaction() as connection:
        await look_everywhere(connection)
        yield connection


async def go_into(connection: AsyncConnection, brain: BrainId) -> None:
    """From here on the transaction is inside this brain: the console changes rows of several in one."""
    await connection.execute(_ENTER_BY_ID, (str(int(brain)),))


async def look_everywhere(connection: AsyncConnection) -> None:
    """From here on the transaction reads all brains and writes to none."""
    await connection.execute(_EVERYTHING)


async def cores(database: Database, account: str = LOCAL) -> list[Core]:
    """The cores of an account, the default one first."""
    checked(BrainKey(account))
    async with database.transaction() as connection:
        await connection.execute(_AS_ACCOUNT, (account,))
        cursor = await connection.execute(_CORES, (account,))
        return [Core(row[0], row[1], row[2], account) for row in await cursor.fetchall()]


async def add_core(database: Database, slug: str, name: str | None = None, account: str = LOCAL) -> Core:
    """Make a core; the first of an account is its default one.

    Raises:
        BrainError: the slug is none, or is taken.
    """
    checked(BrainKey(account, name))
    if not SLUG.fullmatch(slug):
        raise BrainError(
            f"A core cannot be named {slug[:80]!r}.",
            remedy="Use up to 64 of a-z, 0-9, - and _, and a letter or digit first.",
        )
    async with database.transaction() as connection:
        cursor = await connection.execute(_ADD, (account, slug, name or slug))
        row = await cursor.fetchone()
    if row is None or row[0] is None:
        raise BrainError(f"There is a core {slug!r} already.", remedy="`noctuary cores` lists them.")
    return next(core for core in await cores(database, account) if core.slug == slug)


def _unknown(key: BrainKey) -> CoreUnknown:
    if key.core is None:
        return CoreUnknown(
            "The account has no core yet.", remedy="Make one at the keyboard: noctuary cores add NAME"
        )
    return CoreUnknown(
        f"There is no core {key.core[:80]!r}.", remedy="Make it at the keyboard: noctuary cores add NAME"
    )
