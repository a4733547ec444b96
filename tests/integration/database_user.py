"""One user of the database in a process of its own, told by its standard input what to do.

Answers every line with one line. `--as UID` gives root's rights up first: everything is imported
before that, for the interpreter may lie where only root can read.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401 - before root's rights are gone
import os
import sys
from pathlib import Path

import psycopg.types.json  # noqa: F401 - before root's rights are gone

import engine.database.opening  # noqa: F401 - the same
from engine.database import Database
from engine.errors import NoctuaryError
from engine.settings import Settings


async def answer(database: Database, order: str) -> str:
    kind, _, rest = order.partition(" ")
    if kind == "lock":
        return "taken" if await database.try_lock(rest) else "held by another"
    async with database.connection() as connection:
        row = await (await connection.execute(rest.encode())).fetchone()
    return repr(row)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main() -> None:
    settings = Settings.load(cwd=Path("/"))
    try:
        database = await Database.open(settings, application="user")
    except NoctuaryError as error:
        say(f"{type(error).__name__}: {error}")
        return
    say("open")
    while order := (await asyncio.to_thread(sys.stdin.readline)).strip():
        say(await answer(database, order))
    await database.close()
    say("closed")


if __name__ == "__main__":
    asyncio.run(asyncio.sleep(0))
    if sys.argv[1:2] == ["--as"]:
        os.setgroups([])
        os.setgid(int(sys.argv[2]))
        os.setuid(int(sys.argv[2]))
    asyncio.run(main())
