"""Which folders this machine can reach: on a shared database, a folder may lie on another's disk.

A worker that read a foreign path would find nothing, or somebody else's notes, and write that into the
index. So a folder has a machine. On another one it counts as reached only when what stands at its path is
what the index holds: a network mount of the same notes.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.notes.model import FolderId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.database import Database

MACHINE_ID = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))

SAMPLE = 20
"""Indexed files compared with the disk to see whether a foreign folder is mounted here."""

COARSE_NS = 2_000_000_000
"""How far the time of a file may be off through a network mount: FAT's two seconds are the coarsest."""

_FOLDERS = """
    SELECT id, path, machine, coalesce(host, '') FROM folder
    WHERE %(folder)s::integer IS NULL OR id = %(folder)s ORDER BY path
"""

_SAMPLE = "SELECT path, size, mtime_ns FROM file WHERE folder = %s ORDER BY hash LIMIT %s"

_log = logging.getLogger("noctuary.folders")


@cache
def machine() -> str:
    """Names this machine to others: of machine-id(5), which is not to be given away as it is."""
    for path in MACHINE_ID:
        try:
            found = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if found and found != "uninitialized":
            return hashlib.sha256(f"noctuary {found}".encode()).hexdigest()[:32]
    return f"host {host()}"


def host() -> str:
    """The machine's name, for humans."""
    return socket.gethostname()


async def foreign(connection: AsyncConnection, folder: FolderId | None = None) -> dict[FolderId, str]:
    """Why each folder that is not reached here is not; of all folders, or of one."""
    cursor = await connection.execute(_FOLDERS, {"folder": folder})
    rows = await cursor.fetchall()
    return {
        FolderId(identity): _reason(path, where)
        for identity, path, belongs_to, where in rows
        if belongs_to not in {None, machine()} and not await _is_mounted(connection, identity, path)
    }


class Reach:
    """The folders that this process must leave to others, as far as it has looked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reasons: dict[FolderId, str] = {}

    async def refresh(self) -> None:
        """Look again at every folder."""
        async with self._database.connection() as connection:
            before, self._reasons = self._reasons, await foreign(connection)
        for folder in self._reasons.keys() - before.keys():
            _log.warning("%s", self._reasons[folder])

    def foreign(self) -> list[FolderId]:
        """The folders that are not reached here."""
        return list(self._reasons)


def _reason(path: str, where: str) -> str:
    return (
        f"{path} lies on another machine ({where or 'unknown'}) and is not mounted here: its notes are left"
        " to a worker there. Vectors are made here all the same."
    )


async def _is_mounted(connection: AsyncConnection, folder: int, path: str) -> bool:
    cursor = await connection.execute(_SAMPLE, (folder, SAMPLE))
    sample = await cursor.fetchall()
    return await asyncio.to_thread(_agree, Path(path), sample)


def _agree(root: Path, sample: Sequence[tuple[str, int, int]]) -> bool:
    """Whether most of the indexed files stand there as the index has them."""
    equal = sum(_as_indexed(root / path, size, mtime_ns) for path, size, mtime_ns in sample)
    return 2 * equal > len(sample)


def _as_indexed(file: Path, size: int, mtime_ns: int) -> bool:
    try:
        found = file.stat()
    except OSError:
        return False
    return found.st_size == size and abs(found.st_mtime_ns - mtime_ns) <= COARSE_NS
