"""Makes the data folder, once and as a whole: an interrupted first start leaves none behind."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING

from engine.database.address import ADMIN
from engine.database.embedded.account import Account, give
from engine.database.embedded.locate import MAJOR
from engine.errors import DatabaseRefused, DatabaseUnavailable

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
"""All that the server's programs see: no LANG and no PG* variable changes what they do."""


def exists(folder: Path) -> bool:
    """Whether `folder` is a data folder of this server.

    Raises:
        DatabaseRefused: it is another version's, or holds something else.
    """
    try:
        version = (folder / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        if folder.exists() and any(folder.iterdir()):
            raise DatabaseRefused(
                f"{folder} holds files, but no database.", remedy="Move it aside; it is not touched."
            ) from None
        return False
    if version != str(MAJOR):
        raise DatabaseRefused(
            f"The data in {folder} is of PostgreSQL {version}; this program brings version {MAJOR}.",
            remedy="Start the program version that made it, or move the folder aside to begin anew.",
        )
    return True


async def make(folder: Path, programs: Path, account: Account) -> None:
    """Create an empty cluster in `folder`. The caller holds the start lock.

    Raises:
        DatabaseUnavailable: initdb failed, with its own last words.
    """
    making = folder.with_name(folder.name + ".new")
    shutil.rmtree(making, ignore_errors=True)  # never served: the rename below is what makes it data
    try:
        making.mkdir(mode=0o700)
        give(making, account)
        await _initdb(making, programs, account)
        making.rename(folder)
    except OSError as error:
        raise DatabaseUnavailable(
            f"No database can be made in {folder}: {error}.",
            remedy="Make room or give access, and start again.",
        ) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)


async def _initdb(folder: Path, programs: Path, account: Account) -> None:
    process = await asyncio.create_subprocess_exec(
        programs / "initdb",
        *("-D", reached_as(folder), f"--username={ADMIN}"),
        # Not what LANG says. Messages stay in plain English; every database knows all letters.
        *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        # Whoever reaches the socket in this 0700 folder could read the files as well: a password
        # or a check of the user's name (which containers often lack) would guard nothing.
        *("--auth-local=trust", "--auth-host=reject"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=ENVIRONMENT,
        **account.identity(),
    )
    try:
        _, words = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()  # it removes what it made
        await process.wait()
        raise
    if process.returncode:
        reason = " ".join(words.decode(errors="replace").split()) or f"initdb ended with {process.returncode}"
        raise DatabaseUnavailable(f"No database can be made in {folder}: {reason}.")


def reached_as(folder: Path) -> str:
    """`folder` as a child that starts in it names it.

    On Linux by its working directory: an absolute path would need every parent folder to be open
    to the server's account, and a home folder is not, nor shall it be opened.
    """
    return "/proc/self/cwd" if os.path.exists("/proc/self/cwd") else str(folder)  # noqa: PTH110
