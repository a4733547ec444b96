"""The data folder: judged, and made once and as a whole. An interrupted first start leaves none behind."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import stat
from typing import TYPE_CHECKING

from engine.cleanup import to_its_end
from engine.database.address import ADMIN
from engine.database.embedded.account import Account, give
from engine.database.embedded.locate import MAJOR
from engine.errors import DatabaseRefused, DatabaseUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database.embedded.places import Places

ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
"""All that the server's programs see: no LANG and no PG* variable changes what they do."""


_TOO_OPEN = 0o027
"""Rights of others with which PostgreSQL does not start; that its group may read is allowed."""


def exists(folder: Path) -> bool:
    """Whether `folder` is a data folder of this server.

    Raises:
        DatabaseRefused: it is another version's, or holds something else.
    """
    try:
        version = (folder / "PG_VERSION").read_text(errors="replace").strip()
    except FileNotFoundError:
        if folder.exists() and any(folder.iterdir()):
            raise DatabaseRefused(
                f"{folder} holds files, but no database.", remedy="Move it aside; it is not touched."
            ) from None
        return False
    if not version.isdecimal():
        raise DatabaseRefused(
            f"The file PG_VERSION in {folder} is damaged: it names no version.",
            remedy="Put the data folder back from a copy, or move it aside to begin anew.",
        )
    if version != str(MAJOR):
        raise DatabaseRefused(
            f"The data in {folder} is of PostgreSQL {version}; this program brings version {MAJOR}.",
            remedy="Start the program version that made it, or move the folder aside to begin anew.",
        )
    return True


def unusable(folder: Path, error: OSError) -> DatabaseUnavailable:
    """What is said of a data folder that the system does not let us use."""
    return DatabaseUnavailable(
        f"The data folder {folder} cannot be used: {error}.",
        remedy="`noctuary locate` tells where it is; XDG_DATA_HOME moves it.",
    )


def wrong_rights(folder: Path) -> int | None:
    """The permissions of a data folder with which PostgreSQL would not start on it; else None."""
    mode = stat.S_IMODE(folder.stat().st_mode)
    return mode if mode & _TOO_OPEN or mode & stat.S_IRWXU != stat.S_IRWXU else None


def check_rights(folder: Path) -> None:
    """See to it that a data folder is its owner's alone, as PostgreSQL demands.

    Raises:
        DatabaseRefused: it is not.
    """
    mode = wrong_rights(folder)
    if mode is not None:
        raise DatabaseRefused(
            f"The permissions of the data folder {folder} are {mode:04o}, with which PostgreSQL does not"
            " start: it wants 0700.",
            remedy="`noctuary doctor --fix` sets that.",
        )


def put_aside(path: Path) -> Path:
    """Rename `path` to a name beside it that is free; the name. What it holds is kept."""
    numbers = itertools.count(2)
    target = path.with_name(f"{path.name}.stale")
    while os.path.lexists(target):
        target = path.with_name(f"{path.name}.stale-{next(numbers)}")
    return path.rename(target)


async def make(places: Places, programs: Path, account: Account) -> None:
    """Create an empty cluster. The caller holds the start lock.

    What an earlier start left unfinished is put aside: what this one did not make, it does not remove.

    Raises:
        DatabaseUnavailable: initdb failed, with its own last words.
    """
    folder, making = places.folder, places.unfinished
    try:
        if os.path.lexists(making):
            put_aside(making)
    except OSError as error:
        raise unusable(folder, error) from error
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
        await to_its_end(process.wait())
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
