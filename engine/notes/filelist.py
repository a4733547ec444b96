"""Index against disk, file by file, from what the last survey and the index say: no walk for each look."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engine.database.bulk import as_json, every
from engine.notes.model import DriftCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.notes import Notes
    from engine.notes.model import DriftReport

_INDEXED = """
    SELECT folder.path, file.path, (SELECT count(*) FROM chunk WHERE chunk.file = file.id)
    FROM file JOIN folder ON folder.id = file.folder ORDER BY folder.path, file.path
"""

_KNOWN = """
    SELECT wanted.folder, wanted.path FROM json_to_recordset(%s::json) AS wanted (folder text, path text)
    JOIN folder ON folder.path = wanted.folder
    JOIN file ON file.folder = folder.id AND file.path = wanted.path
"""

Place = tuple[str, str]
"""A folder and a path in it."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A note on the disk, in the index (with so many chunks), or both."""

    folder: Path
    path: str
    chunks: int
    indexed: bool
    on_disk: bool


class Files:
    """The notes by their files."""

    def __init__(self, database: Database, notes: Notes) -> None:
        self._database = database
        self._notes = notes
        self._looking = asyncio.Lock()

    async def report(self, *, within: float | None = None) -> DriftReport:
        """The last look at index and disk; a new one where there is none, or none `within` so many seconds.

        Whoever watches the folders keeps it true, and need not name an age.
        """
        async with self._looking:  # several who want one wait for the same
            report = self._notes.last_drift
            if report is None or (within is not None and _age(report) > within):
                report = await self._notes.drift()
        return report

    async def on_disk(self, report: DriftReport, indexed: int) -> int:
        """How many notes are on the disk, where `indexed` are in the index."""
        differing = await asyncio.to_thread(_differing, report)
        async with self._database.connection() as connection:
            known = await _known(connection, list(differing))
        gone = sum(1 for place in known if not differing[place])
        new = sum(there for place, there in differing.items() if place not in known)
        return max(0, indexed - gone + new)

    async def rows(self, report: DriftReport) -> list[FileRow]:
        """Every note by folder and path."""
        async with self._database.connection() as connection:
            indexed = await every(await connection.execute(_INDEXED))
        return await asyncio.to_thread(_rows, indexed, report)


def _age(report: DriftReport) -> float:
    return (datetime.now(UTC) - report.at).total_seconds()


def _differing(report: DriftReport) -> dict[Place, bool]:
    """Whether what differs is on the disk. A failed job does not say so: the disk does."""
    found = {}
    for row in report.rows:
        there = row.cause is not DriftCause.ORPHANED
        if row.cause is DriftCause.JOB_FAILED:
            there = os.path.lexists(row.folder / row.path)
        found[str(row.folder), row.path] = there
    return found


async def _known(connection: AsyncConnection, places: list[Place]) -> set[Place]:
    if not places:
        return set()
    wanted = await as_json({"folder": folder, "path": path} for folder, path in places)
    cursor = await connection.execute(_KNOWN, (wanted,))
    return {(row[0], row[1]) for row in await every(cursor)}


def _rows(indexed: list[tuple[str, str, int]], report: DriftReport) -> list[FileRow]:
    differing: Mapping[Place, bool] = _differing(report)
    rows = [
        FileRow(Path(folder), path, chunks, indexed=True, on_disk=differing.get((folder, path), True))
        for folder, path, chunks in indexed
    ]
    have = {(folder, path) for folder, path, _ in indexed}
    rows += [
        FileRow(Path(folder), path, 0, indexed=False, on_disk=True)
        for (folder, path), there in differing.items()
        if there and (folder, path) not in have
    ]
    return sorted(rows, key=lambda row: (row.folder, row.path))
