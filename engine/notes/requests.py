"""Indexing that is asked for and not waited for: made of jobs, with a number to ask after it by.

The jobs tell how it stands, whichever process works them off; nothing is kept in memory.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import FolderError
from engine.notes import named
from engine.notes.model import JobStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.database import Database
    from engine.notes import Notes
    from engine.notes.model import Folder

KEEP = "7 days"
"""How long a request can be asked after: as long as its jobs are kept."""

# '0' is what follows '/' in the "C" collation of the column.
_REQUEST = """
    INSERT INTO index_request (jobs)
    SELECT coalesce(array_agg(id), '{}') FROM job
    WHERE status IN ('pending', 'processing') AND (%(folder)s::integer IS NULL
        OR folder = %(folder)s AND (%(path)s = '' OR path = %(path)s OR path >= %(from)s AND path < %(to)s))
    RETURNING id
"""

_FORGET = "DELETE FROM index_request WHERE at < now() - %s::interval"

# A job that is gone was done a week ago, or became one with a later job for the same path.
_STATE = """
    SELECT cardinality(request.jobs), count(*) FILTER (WHERE job.status = 'pending'),
        count(*) FILTER (WHERE job.status = 'processing'), count(*) FILTER (WHERE job.status = 'failed')
    FROM index_request AS request LEFT JOIN job ON job.id = ANY(request.jobs)
    WHERE request.id = %s GROUP BY request.id
"""


@dataclass(frozen=True, slots=True)
class RequestState:
    """How an indexing stands that was asked for: the status of its jobs together, and how many there are."""

    id: int
    status: JobStatus
    jobs: int
    failed: int


class IndexRequests:
    """Indexing by request."""

    def __init__(self, database: Database, notes: Notes) -> None:
        self._database = database
        self._notes = notes

    async def make(self, path: str | None = None) -> int:
        """Queue what differs from the disk, in all folders or at and below `path`: absolute, or relative to
        one of the folders. Returns the request's number.

        Raises:
            FolderError: there is nothing to be indexed at that path.
        """
        place: Mapping[str, Any] = {"folder": None, "path": "", "from": "", "to": ""}
        if path is None:
            await self._notes.index_all()
        else:
            place = await self._ingest(path, await self._notes.folders())
        async with self._database.connection() as connection:
            await connection.execute(_FORGET, (KEEP,))
            cursor = await connection.execute(_REQUEST, place)
            row = await cursor.fetchone()
        return row[0] if row else 0

    async def state(self, request: int) -> RequestState | None:
        """How a request stands; None when there is none of that number."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(_STATE, (request,))
            row = await cursor.fetchone()
        if row is None:
            return None
        jobs, pending, processing, failed = row
        begun = processing or pending < jobs
        if pending or processing:
            status = JobStatus.PROCESSING if begun else JobStatus.PENDING
        else:
            status = JobStatus.FAILED if failed else JobStatus.DONE
        return RequestState(request, status, jobs, failed)

    async def _ingest(self, path: str, known: Sequence[Folder]) -> Mapping[str, Any]:
        """Queue a path, and say where its jobs are."""
        fault = FolderError(f"{path!r} lies in no indexed folder.", remedy=named.folders_there_are([]))
        for place in await asyncio.to_thread(_places, path, known):
            folder, relative = place
            try:
                await self._notes.ingest(folder.path / relative)
            except FolderError as error:
                fault = error
            else:
                below = {"from": f"{relative}/", "to": f"{relative}0"}
                return {"folder": folder.id, "path": relative, **below}
        raise fault


def _places(path: str, known: Sequence[Folder]) -> list[tuple[Folder, str]]:
    """Where a path may be meant to lie. A name relative to nothing is never taken from the working folder."""
    if "\0" in path:
        return []
    paths = [Path(path)] if os.path.isabs(path) else [folder.path / path for folder in known]  # noqa: PTH117
    return [place for each in paths if (place := named.placed(each, known)) is not None]
