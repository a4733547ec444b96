"""The queue: every statement that changes the table `job`.

A job says that a path wants a look; what is done is decided by what stands on the disk then. Waiting
jobs coalesce by path and no path is held twice: two partial unique indexes see to both. A claimed job
carries a lease; when it lapses the job waits again, and after MAX_ATTEMPTS claims it has failed.

The clock may be set back: what was stamped by a later one is due, and nobody waits for it to come round.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.database.bulk import as_json
from engine.errors import RetryError
from engine.notes.model import FolderId, JobId, JobKind, JobStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

MAX_ATTEMPTS = 3
"""Claims after which a job that never came to an end has failed: it may be what kills the worker."""

MOMENT = 2.0
"""Seconds that who works until nothing is left waits for a job that is held back: a deletion's grace,
a note that is being written."""

AHEAD = "1 minute"
"""How far ahead of the clock no stamp and no delay lies, unless the clock was set back since."""

SMALLEST_SHARE, MANY_WORKERS = 32, 8
"""Jobs taken at once however many work on a heap, and workers beyond which its end is not shared better."""

KEEP_DONE = "7 days"
"""How long a done job is kept for the Jobs pane."""

_ENQUEUE = """
    INSERT INTO job (kind, folder, path, priority, confirmed, not_before)
    SELECT kind, folder.id, wanted.path, priority, %(confirmed)s, now() + %(delay)s * interval '1 second'
    FROM json_to_recordset(%(wanted)s::json) AS wanted (kind text, path text, priority bigint)
    JOIN folder ON folder.id = %(folder)s  -- it may have been removed since it was surveyed
    ON CONFLICT (folder, path) WHERE status = 'pending' DO UPDATE SET
        kind = excluded.kind,
        priority = greatest(job.priority, excluded.priority),
        confirmed = job.confirmed OR excluded.confirmed,
        not_before = least(job.not_before, excluded.not_before)
    WHERE (job.kind, job.priority) IS DISTINCT FROM (excluded.kind, greatest(job.priority, excluded.priority))
        OR excluded.confirmed AND NOT job.confirmed OR excluded.not_before < job.not_before
"""

# What makes a job wait again looks first whether another waits for its path: between the look and the
# change nobody else may queue one.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('noctuary:queue', 0))"

# A path whose job is in somebody's hands is left waiting: job_processing would refuse it anyway. By NOT IN,
# as NOT EXISTS becomes a join, which, planned when the queue was empty, compares each waiting job with each
# in hand. Written as `folder <> ALL`, a prepared statement would expect no row where there is but one folder,
# and read another index from end to end.
_CLAIM = f"""
    WITH next AS (
        SELECT id FROM job
        WHERE status = 'pending' AND attempts = 0 AND NOT %(foreign)s::integer[] @> ARRAY[folder]
            AND (not_before <= now() OR not_before > now() + interval '{AHEAD}')
            AND (folder, path) NOT IN (SELECT folder, path FROM job WHERE status = 'processing')
        ORDER BY priority DESC, id LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    )
    UPDATE job SET status = 'processing', attempts = attempts + 1, worker = %(worker)s, error = NULL,
        started_at = now(), lease_until = now() + %(lease)s * interval '1 second'
    FROM next, folder
    WHERE job.id = next.id AND folder.id = job.folder
    RETURNING job.id, job.kind, job.folder, folder.path, job.path, job.priority, job.confirmed, job.attempts
"""

_CLAIM_SUSPECT = _CLAIM.replace("attempts = 0", "attempts > 0").replace(
    "ORDER BY priority", "ORDER BY attempts, priority"
)

_SHARE = """
    SELECT (SELECT count(DISTINCT worker) FROM job WHERE status = 'processing' AND worker <> %(worker)s),
        (SELECT count(*) FROM (SELECT FROM job WHERE status = 'pending' LIMIT %(enough)s) AS waiting)
"""

_DONE = """
    WITH done AS (
        UPDATE job SET status = 'done', finished_at = now(), lease_until = NULL, error = NULL
        WHERE id = ANY(%(ids)s) AND status = 'processing' AND worker = %(worker)s
        RETURNING id, folder, path
    )
    DELETE FROM job AS old USING done
    WHERE old.status = 'failed' AND old.folder = done.folder AND old.path = done.path AND old.id < done.id
"""

_FAIL = """
    WITH failed AS (
        UPDATE job SET status = 'failed', finished_at = now(), lease_until = NULL, error = %(error)s
        WHERE id = %(id)s AND status = 'processing' AND worker = %(worker)s
        RETURNING id, folder, path
    )
    DELETE FROM job AS old USING failed
    WHERE old.status = 'failed' AND old.folder = failed.folder AND old.path = failed.path
        AND old.id <> failed.id
"""

_HAS_LAPSED = f"(lease_until < now() OR started_at > clock_timestamp() + interval '{AHEAD}')"

_ANY_LAPSED = f"SELECT EXISTS (SELECT FROM job WHERE status = 'processing' AND {_HAS_LAPSED})"

# A lapsed job whose path has a newer waiting one hands over its count, so that a note which kills
# every worker cannot hide behind being saved again and again; and the human's word, if it has it.
_LAPSED_INTO_WAITING = f"""
    WITH lapsed AS (
        DELETE FROM job WHERE status = 'processing' AND {_HAS_LAPSED} AND EXISTS (
            SELECT FROM job AS waiting WHERE waiting.status = 'pending'
                AND waiting.folder = job.folder AND waiting.path = job.path)
        RETURNING folder, path, attempts, confirmed
    )
    UPDATE job SET attempts = greatest(job.attempts, lapsed.attempts),
        confirmed = job.confirmed OR lapsed.confirmed
    FROM lapsed WHERE job.status = 'pending' AND job.folder = lapsed.folder AND job.path = lapsed.path
"""

_LAPSED = f"""
    WITH lapsed AS (
        UPDATE job SET
            status = CASE WHEN attempts >= %(most)s THEN 'failed' ELSE 'pending' END,
            error = format('The worker %%s stopped while it worked on this (attempt %%s of %%s).',
                worker, least(attempts, %(most)s), %(most)s::integer),
            finished_at = CASE WHEN attempts >= %(most)s THEN now() END,
            lease_until = NULL, worker = NULL
        WHERE status = 'processing' AND {_HAS_LAPSED}
        RETURNING id, status, folder, path
    ), replaced AS (
        DELETE FROM job AS old USING lapsed WHERE lapsed.status = 'failed' AND old.status = 'failed'
            AND old.folder = lapsed.folder AND old.path = lapsed.path AND old.id <> lapsed.id
    )
    SELECT count(*) FROM lapsed
"""

_RELEASED_INTO_WAITING = """
    WITH released AS (
        DELETE FROM job WHERE id = ANY(%(ids)s) AND status = 'processing' AND worker = %(worker)s AND EXISTS (
            SELECT FROM job AS waiting WHERE waiting.status = 'pending'
                AND waiting.folder = job.folder AND waiting.path = job.path)
        RETURNING folder, path, confirmed
    )
    UPDATE job SET confirmed = job.confirmed OR released.confirmed
    FROM released WHERE job.status = 'pending' AND job.folder = released.folder AND job.path = released.path
"""

_RELEASE = """
    UPDATE job SET status = 'pending', attempts = greatest(attempts - 1, 0), worker = NULL,
        lease_until = NULL, started_at = NULL, not_before = now() + %(delay)s * interval '1 second'
    WHERE id = ANY(%(ids)s) AND status = 'processing' AND worker = %(worker)s
"""

_RETRY = """
    WITH chosen AS (
        SELECT DISTINCT ON (folder, path) id FROM job
        WHERE status = 'failed' AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))
            AND (folder, path) NOT IN (SELECT folder, path FROM job WHERE status = 'pending')
        ORDER BY folder, path, id DESC
    )
    UPDATE job SET status = 'pending', attempts = 0, error = NULL, worker = NULL, finished_at = NULL,
        not_before = now()
    FROM chosen WHERE job.id = chosen.id
"""

# The order keeps to the partial indexes: EXISTS would read the done jobs from end to end whenever the
# planner believes that many wait.
_WAITING = f"""
    SELECT coalesce(
        (SELECT true FROM job WHERE status = 'pending' AND NOT %(foreign)s::integer[] @> ARRAY[folder]
            AND (not_before <= now() + %(within)s * interval '1 second'
                OR not_before > now() + interval '{AHEAD}')
            ORDER BY priority DESC, id LIMIT 1),
        (SELECT true FROM job WHERE status = 'processing' AND NOT %(foreign)s::integer[] @> ARRAY[folder]
            AND NOT {_HAS_LAPSED} ORDER BY folder, path LIMIT 1), false)
"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A job in this worker's hands."""

    id: JobId
    kind: JobKind
    folder: FolderId
    root: Path
    path: str
    priority: int
    confirmed: bool
    attempts: int

    @property
    def file(self) -> Path:
        """The path on the disk."""
        return self.root / self.path


@dataclass(frozen=True, slots=True)
class Wanted:
    """A path that wants a look. `priority` is its modification time in ns: the newest go first."""

    kind: JobKind
    path: str
    priority: int = 0


async def enqueue(
    connection: AsyncConnection,
    folder: FolderId,
    wanted: Sequence[Wanted],
    *,
    confirmed: bool = False,
    delay: float = 0.0,
) -> int:
    """Queue paths of one folder; a path that waits already keeps its place. Returns the rows touched.

    `delay` (seconds) holds the jobs back: an atomic save looks like a delete for a moment.
    """
    unique = {item.path: item for item in wanted}
    if not unique:
        return 0
    values = {
        "folder": folder,
        "wanted": await as_json(
            {"kind": str(item.kind), "path": path, "priority": item.priority} for path, item in unique.items()
        ),
        "confirmed": confirmed,
        "delay": delay,
    }
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        cursor = await connection.execute(_ENQUEUE, values)
    return cursor.rowcount


async def share(connection: AsyncConnection, worker: str, *, most: int) -> int:
    """How many jobs this worker should take at once: `most`, or fewer towards the end of a heap that others
    work on too, so that none of them has a batch in hand long after the rest has nothing to do.
    """
    cursor = await connection.execute(_SHARE, {"worker": worker, "enough": most * 2 * MANY_WORKERS})
    row = await cursor.fetchone() or (0, 0)
    others, waiting = row
    return min(most, max(SMALLEST_SHARE, waiting // (2 * (others + 1)))) if others else most


async def claim(
    connection: AsyncConnection,
    worker: str,
    *,
    limit: int,
    lease: float,
    foreign: Sequence[FolderId] = (),
    idle: bool = True,
) -> list[Claimed]:
    """Take up to `limit` waiting jobs, newest first, for `lease` seconds; none of `foreign` folders.

    A job over which a worker died may be what kills workers: it is taken alone, after all others, and only
    by one that is `idle`, so that none that is innocent dies with it time after time.
    """
    values = {"limit": limit, "worker": worker, "lease": lease, "foreign": list(foreign)}
    rows = await (await connection.execute(_CLAIM, values)).fetchall()
    if not rows and idle:
        rows = await (await connection.execute(_CLAIM_SUSPECT, values | {"limit": 1})).fetchall()
    claimed = [
        Claimed(
            JobId(row[0]), JobKind(row[1]), FolderId(row[2]), Path(row[3]), row[4], row[5], row[6], row[7]
        )
        for row in rows
    ]
    return sorted(claimed, key=lambda job: (-job.priority, job.id))


async def renew(connection: AsyncConnection, worker: str, ids: Sequence[JobId], *, lease: float) -> None:
    """Extend the lease of jobs still being worked on."""
    await connection.execute(
        "UPDATE job SET lease_until = now() + %s * interval '1 second'"
        " WHERE id = ANY(%s) AND status = 'processing' AND worker = %s",
        (lease, list(ids), worker),
    )


async def done(connection: AsyncConnection, worker: str, ids: Sequence[JobId]) -> None:
    """Close jobs; earlier failures of the same paths are settled by that."""
    await connection.execute(_DONE, {"ids": list(ids), "worker": worker})


async def fail(connection: AsyncConnection, worker: str, job: JobId, error: str) -> None:
    """Close a job as failed with the sentence a human will read; it replaces an older failure."""
    await connection.execute(_FAIL, {"id": job, "worker": worker, "error": error})


async def release(
    connection: AsyncConnection, worker: str, ids: Sequence[JobId], *, delay: float = 0.0
) -> None:
    """Give jobs back unharmed, as at a clean stop: the claim does not count."""
    if not ids:
        return
    values = {"ids": list(ids), "worker": worker, "delay": delay}
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        await connection.execute(_RELEASED_INTO_WAITING, values)
        await connection.execute(_RELEASE, values)


async def held(connection: AsyncConnection, worker: str) -> list[JobId]:
    """The jobs that are in a worker's hands, also those it was cancelled over before it knew of them."""
    cursor = await connection.execute(
        "SELECT id FROM job WHERE status = 'processing' AND worker = %s", (worker,)
    )
    return [JobId(row[0]) for row in await cursor.fetchall()]


async def reclaim_lapsed(connection: AsyncConnection) -> int:
    """Return jobs whose worker died to the queue, or fail them at the third time. Returns how many."""
    cursor = await connection.execute(_ANY_LAPSED)
    if await cursor.fetchone() != (True,):
        return 0
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        await connection.execute(_LAPSED_INTO_WAITING)
        cursor = await connection.execute(_LAPSED, {"most": MAX_ATTEMPTS})
        row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def retry(connection: AsyncConnection, ids: Sequence[JobId] | None = None) -> int:
    """Put failed jobs (all of them when `ids` is None) back into the queue. Returns how many."""
    chosen = None if ids is None else list(ids)
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        cursor = await connection.execute(_RETRY, {"ids": chosen})
    return cursor.rowcount


async def require_failed(connection: AsyncConnection, ids: Sequence[JobId]) -> None:
    """Make sure that each of these is a failed job.

    Raises:
        RetryError: some are not; it names every one of them.
    """
    cursor = await connection.execute("SELECT id, status FROM job WHERE id = ANY(%s)", (list(ids),))
    known: dict[JobId, str] = dict(await cursor.fetchall())
    wrong = [
        f"Job {each} has not failed: it is {known[each]}." if each in known else f"There is no job {each}."
        for each in dict.fromkeys(ids)
        if known.get(each) != JobStatus.FAILED
    ]
    if wrong:
        raise RetryError(" ".join(wrong), remedy="`noctuary jobs --status failed` lists those that failed.")


async def waiting(
    connection: AsyncConnection, *, within: float = 0.0, foreign: Sequence[FolderId] = ()
) -> bool:
    """Whether any path outside `foreign` folders still wants its words indexed: vectors wait so long.

    A job that is held back counts when its time comes `within` so many seconds; one whose worker let
    its lease lapse does not count: it may be the last sign of a process that is no more.
    """
    cursor = await connection.execute(_WAITING, {"within": within, "foreign": list(foreign)})
    row = await cursor.fetchone()
    return bool(row and row[0])


async def prune(connection: AsyncConnection) -> int:
    """Drop done jobs older than KEEP_DONE (or of a clock that was set back since). Returns how many."""
    cursor = await connection.execute(
        "DELETE FROM job WHERE status = 'done'"
        " AND (finished_at < now() - %s::interval OR finished_at > now() + interval '1 day')",
        (KEEP_DONE,),
    )
    return cursor.rowcount
