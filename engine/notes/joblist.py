"""The queue as people see it: pages of jobs, and how many there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.notes.model import Job, JobCounts, JobId, JobKind, JobStatus
from engine.text.safe import spelt

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_LIST = """
    SELECT job.id, job.kind, job.status, folder.path, job.path, job.attempts, job.error, job.created_at,
        job.started_at, job.finished_at, job.worker
    FROM job JOIN folder ON folder.id = job.folder
    WHERE (%(status)s::text IS NULL OR job.status = %(status)s)
        AND (%(text)s = ''
            OR position(lower(%(text)s) IN lower(job.path || ' ' || coalesce(job.error, ''))) > 0)
    ORDER BY job.id DESC LIMIT %(limit)s OFFSET %(offset)s
"""

_COUNTS = """
    SELECT count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'processing'),
        count(*) FILTER (WHERE status = 'done'), count(*) FILTER (WHERE status = 'failed'),
        count(*) FILTER (WHERE status = 'done' AND finished_at > now() - interval '60 seconds')
            / least(60.0, greatest(1.0, extract(epoch FROM now() - min(started_at)
                FILTER (WHERE status = 'done' AND finished_at > now() - interval '60 seconds'))))
    FROM job
"""


async def listing(
    connection: AsyncConnection, *, status: JobStatus | None, text: str, limit: int, offset: int
) -> list[Job]:
    """A page of jobs, newest first; `text` is looked for in the path and the error."""
    cursor = await connection.execute(
        _LIST,
        {
            "status": None if status is None else str(status),
            "text": spelt(text).replace("\0", ""),
            "limit": limit,
            "offset": offset,
        },
    )
    return [
        Job(JobId(row[0]), JobKind(row[1]), JobStatus(row[2]), Path(row[3]), *row[4:])
        for row in await cursor.fetchall()
    ]


async def counts(connection: AsyncConnection) -> JobCounts:
    """Jobs by status and the rate over the last minute."""
    cursor = await connection.execute(_COUNTS)
    row = await cursor.fetchone()
    if row is None:
        return JobCounts()
    return JobCounts(row[0], row[1], row[2], row[3], float(row[4] or 0.0))
