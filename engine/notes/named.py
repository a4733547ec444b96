"""What a human names by a path: a note or a folder to index, or rows of drift. A name that means nothing is
an error that tells which folders there are; taken for "nothing to do", a slip would look like success.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import FolderError
from engine.notes import disk, drift, jobs
from engine.notes.model import JobKind
from engine.settings.paths import expanded, is_folder, real
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.notes.model import DriftReport, DriftRow, Folder

# A failed note that is gone from the disk is known too: another look settles its failure.
_KNOWN = """
    SELECT EXISTS (SELECT FROM file WHERE folder = %(folder)s
            AND (path = %(path)s OR path >= %(from)s AND path < %(to)s))
        OR EXISTS (SELECT FROM job WHERE folder = %(folder)s AND status <> 'done'
            AND (path = %(path)s OR path >= %(from)s AND path < %(to)s))
"""


def folders_there_are(known: Iterable[os.PathLike[str] | str]) -> str:
    """The remedy for a path that lies in none of the folders: their names."""
    names = ", ".join(sorted(str(path) for path in known))
    if names:
        return f"Indexed folders: {names}."
    return "No folder is indexed yet: noctuary folders add FOLDER."


async def ingest(database: Database, path: Path, known: Sequence[Folder]) -> int:
    """Queue one note, or what differs below one folder. Returns the jobs queued.

    Raises:
        FolderError: the path lies in no indexed folder, is neither on the disk nor in the index, or is
            nothing that would be indexed.
    """
    place = placed(path, known)
    if place is None:
        raise FolderError(f"{path} lies in no indexed folder.", remedy=_add_first(known))
    folder, relative = place
    if not relative:
        return (await drift.reconcile(database, folder))[1]
    return await _ingest(database, folder, relative)


def _add_first(known: Sequence[Folder]) -> str:
    there_are = folders_there_are(folder.path for folder in known)
    return f"{there_are} Add another: noctuary folders add FOLDER." if known else there_are


async def _ingest(database: Database, folder: Folder, relative: str) -> int:
    target = folder.path / relative
    if not disk.nameable(relative):
        raise FolderError(f"The index cannot hold the name of {target}.", remedy="Rename it.")
    async with database.connection() as connection:
        known = await _is_known(connection, folder, relative)
    if not known:
        await asyncio.to_thread(_refuse_nothing, folder, relative)
    if is_folder(target) or (not os.path.exists(target) and not disk.is_note(target.name)):  # noqa: PTH110 - which may raise
        return (await drift.reconcile(database, folder, relative))[1]
    try:
        wanted = jobs.Wanted(JobKind.INGEST_PATH, relative, disk.written_ns(target.stat()))
    except OSError:
        wanted = jobs.Wanted(JobKind.DELETE_PATH, relative)
    async with database.transaction() as connection:
        return await jobs.enqueue(connection, folder.id, [wanted], confirmed=True)


async def _is_known(connection: AsyncConnection, folder: Folder, relative: str) -> bool:
    # '0' is what follows '/' in the "C" collation of the column.
    values = {"folder": folder.id, "path": relative, "from": f"{relative}/", "to": f"{relative}0"}
    cursor = await connection.execute(_KNOWN, values)
    return bool((await cursor.fetchone() or (False,))[0])


def _refuse_nothing(folder: Folder, relative: str) -> None:
    """Refuse a path that the index does not know and that is not on the disk, or is left out there."""
    target = folder.path / relative
    if not os.path.lexists(target):
        raise FolderError(f"{target} is neither on the disk nor in the index.", remedy="Check its spelling.")
    out = disk.excluded_folder if is_folder(target) else disk.excluded
    if out(folder.path, relative):
        raise FolderError(
            f"{target} is not indexed: it is hidden, ignored by a .gitignore, below a link to a folder, or"
            " not Markdown.",
            remedy="Name a Markdown file, or a folder of them.",
        )


def narrowed(report: DriftReport, paths: Sequence[str], known: Sequence[Folder]) -> DriftReport:
    """The report with only the rows at or below these paths: as the list shows them, or as on the disk.

    Raises:
        FolderError: one of them is no such path.
    """
    chosen = {row.key for path in paths for row in _meant(path, report.rows, known)}
    return replace(report, rows=tuple(row for row in report.rows if row.key in chosen))


def _meant(typed: str, rows: Sequence[DriftRow], known: Sequence[Folder]) -> list[DriftRow]:
    wanted = spelt(typed.rstrip("/"))
    listed = [row for row in rows if wanted and _within(row.path, wanted)]
    if listed:
        return listed
    place = placed(Path(typed), known)
    if place is not None:
        folder, relative = place
        found = [row for row in rows if row.folder == folder.path and _within(row.path, spelt(relative))]
        if found or not relative or os.path.lexists(folder.path / relative):
            return found
    if not any(os.path.lexists(folder.path / typed) for folder in known):
        there_are = folders_there_are(folder.path for folder in known)
        raise FolderError(f"{typed} is neither an indexed folder nor a path in one.", remedy=there_are)
    return []


def _within(path: str, wanted: str) -> bool:
    return not wanted or path == wanted or path.startswith(wanted + "/")


def placed(path: Path, known: Sequence[Folder]) -> tuple[Folder, str] | None:
    """The folder in which a path lies, and the relative path there; a link counts where it stands."""
    wanted = expanded(path).absolute()
    whole, placed = real(wanted), real(wanted.parent) / wanted.name
    for folder in known:
        if whole == folder.path:
            return folder, ""
        if placed.is_relative_to(folder.path):
            return folder, placed.relative_to(folder.path).as_posix()
    return None
