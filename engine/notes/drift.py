"""Index against disk: the survey that both finds drift and, at start and every so often, queues its repair.

A survey lists the disk, reads the index's rows and compares. Equal stamps mean an unwritten file;
where they differ the bytes are hashed, so a touch is not a change.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.database.bulk import every
from engine.errors import NoteError
from engine.notes import disk, folders, jobs, reach, wanting
from engine.notes.jobs import Wanted
from engine.notes.model import DriftCause, DriftReport, DriftRow, Folder, FolderProblem, JobKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database

_ROWS = "SELECT path, hash, size, mtime_ns, ctime_ns, format FROM file WHERE folder = %s"
_ROWS_BELOW = _ROWS + " AND path >= %s AND path < %s"

_RESTAMP = """
    UPDATE file SET size = fresh.size, mtime_ns = fresh.mtime_ns, ctime_ns = fresh.ctime_ns
    FROM unnest(%s::text[], %s::bytea[], %s::bigint[], %s::bigint[], %s::bigint[])
        AS fresh (path, hash, size, mtime_ns, ctime_ns)
    WHERE file.folder = %s AND file.path = fresh.path AND file.hash = fresh.hash
"""

_OPEN = ("pending", "processing", "failed")

# Parts of one statement a status: each has its own index by path.
_OPEN_JOBS = " UNION ALL ".join(
    "SELECT path, status, error, started_at, finished_at FROM job"
    f" WHERE status = '{status}' AND folder = %(folder)s"
    " AND (%(from)s::text IS NULL OR path >= %(from)s AND path < %(to)s)"
    for status in _OPEN
)

_OTHER_MODEL = """
    SELECT file.path, max(model.name), bool_and(mine.state IS NOT DISTINCT FROM 'pending')
    FROM embedding AS other
    JOIN model ON model.id = other.model
    JOIN chunk ON chunk.passage = other.passage
    JOIN file ON file.id = chunk.file
    LEFT JOIN embedding AS mine ON mine.model = %(model)s AND mine.passage = other.passage
    WHERE other.model <> %(model)s AND other.state = 'embedded' AND file.folder = %(folder)s
        AND mine.state IS DISTINCT FROM 'embedded'
    GROUP BY file.path
"""


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the index knows of a file."""

    hash: bytes
    stamp: disk.Stamp
    outdated: bool = False
    """Whether an older program indexed it, which made other chunks or terms of it."""


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job that is not done."""

    status: str
    error: str | None
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(slots=True)
class Survey:
    """One folder (or a part of it) compared with the index."""

    folder: Folder
    listing: disk.Listing
    indexed: Mapping[str, Indexed]
    missing: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    orphaned: list[str] = field(default_factory=list)
    touched: dict[str, bytes] = field(default_factory=dict)
    problem: str | None = None
    device: int | None = None
    """The file system that was listed; None when the root was on another one before or after."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


async def survey(database: Database, folder: Folder, below: str = "") -> Survey:
    """Compare a folder, or what lies below a relative path in it, with the index.

    One that lies on another machine is not compared with what may stand at its path here.
    """
    async with database.connection() as connection:
        elsewhere = await reach.foreign(connection, folder.id)
    if elsewhere:
        return Survey(folder, disk.Listing(), {}, problem=elsewhere[folder.id])
    before = _device(folder)
    listing, (indexed, device) = await asyncio.gather(
        asyncio.to_thread(disk.listing, folder.path, below), _indexed(database, folder, below)
    )
    result = Survey(folder, listing, indexed)
    await asyncio.to_thread(_compare, result)
    result.device = before if before == _device(folder) else None
    if not below:
        result.problem = disk.root_problem(
            folder.path,
            device,
            indexed=len(indexed),
            on_disk=len(listing.files),
            missing=len(result.orphaned),
        )
    elif bool(result.orphaned) and await asyncio.to_thread(disk.doubtful, folder.path, device):
        result.problem = "The root is not as it was: its survey tells."
    await _restamp(database, result)
    return result


def _device(folder: Folder) -> int | None:
    try:
        return folder.path.stat().st_dev
    except OSError:
        return None


async def _indexed(database: Database, folder: Folder, below: str) -> tuple[dict[str, Indexed], int | None]:
    async with database.connection() as connection:
        if below:
            # '0' is what follows '/' in the "C" collation of the column.
            cursor = await connection.execute(_ROWS_BELOW, (folder.id, f"{below}/", f"{below}0"))
        else:
            cursor = await connection.execute(_ROWS, (folder.id,))
        rows = await every(cursor)
        cursor = await connection.execute("SELECT device FROM folder WHERE id = %s", (folder.id,))
        device = await cursor.fetchone()
    return await asyncio.to_thread(_by_path, rows), device[0] if device else None


def _by_path(rows: Sequence[tuple[Any, ...]]) -> dict[str, Indexed]:
    from engine.notes.prepare import FORMAT  # with the tokenizer, which opening a console need not wait for

    return {row[0]: Indexed(row[1], disk.Stamp(row[2], row[3], row[4]), row[5] < FORMAT) for row in rows}


def _compare(result: Survey) -> None:
    indexed, files = result.indexed, result.listing.files
    for path, stamp in files.items():
        known = indexed.get(path)
        if known is None:
            result.missing.append(path)
        elif known.outdated:
            result.changed.append(path)
        elif known.stamp != stamp or not stamp.ctime_ns:
            _compare_content(result, path, known)
    result.orphaned += [path for path in indexed if path not in files and result.listing.covers(path)]


def _compare_content(result: Survey, path: str, known: Indexed) -> None:
    try:
        reading = disk.read(result.folder.path / path)
    except NoteError:
        result.changed.append(path)  # the job will say what is the matter
        return
    if reading is None:
        return  # gone since the listing: the next look decides
    if hashlib.sha256(reading.raw).digest() == known.hash:
        result.touched[path] = known.hash
        result.listing.files[path] = reading.stamp
    else:
        result.changed.append(path)


async def _restamp(database: Database, result: Survey) -> None:
    """Note the new stamps of files that were touched and not changed, unless a job was quicker."""
    settled = {path: known for path, known in result.touched.items() if result.listing.files[path].ctime_ns}
    if not settled:
        return
    stamps = [result.listing.files[path] for path in settled]
    columns = (
        list(settled),
        list(settled.values()),
        [stamp.size for stamp in stamps],
        [stamp.mtime_ns for stamp in stamps],
        [stamp.ctime_ns for stamp in stamps],
    )
    async with database.connection() as connection:
        await connection.execute(_RESTAMP, (*columns, result.folder.id))


async def open_jobs(connection: AsyncConnection, folder: Folder, below: str = "") -> dict[str, OpenJob]:
    """The jobs of a folder (or of what lies below a path in it) that are not done, by path.

    One that waits outweighs one that is worked on, and that one that failed.
    """
    limits = {"from": f"{below}/", "to": f"{below}0"} if below else {"from": None, "to": None}
    cursor = await connection.execute(_OPEN_JOBS, {"folder": folder.id, **limits})
    found: dict[str, OpenJob] = {}
    for path, *columns in await every(cursor):
        job, known = OpenJob(*columns), found.get(path)
        if known is None or _OPEN.index(job.status) < _OPEN.index(known.status):
            found[path] = job
    return found


async def reconcile(database: Database, folder: Folder, below: str = "") -> tuple[Survey, int]:
    """Survey and queue what differs. Returns the survey and how many jobs were queued.

    A note whose last job failed is left for a human's retry, unless it was written since. An empty or
    missing root queues no deletions.
    """
    result = await survey(database, folder, below)
    files = result.listing.files
    async with database.transaction() as connection:
        open_ = await open_jobs(connection, folder, below)
        wanted = await asyncio.to_thread(_wanted, result, open_)
        gone = [] if result.problem else [*result.orphaned, *_settled(result, open_)]
        queued = await jobs.enqueue(connection, folder.id, wanted)
        queued += await jobs.enqueue(
            connection, folder.id, [Wanted(JobKind.DELETE_PATH, path) for path in gone]
        )
        if files and not below and not result.problem and result.device is not None:
            await folders.remember_device(connection, folder.id, result.device)
    return result, queued


def _wanted(result: Survey, open_: Mapping[str, OpenJob]) -> list[Wanted]:
    files = result.listing.files
    return [
        Wanted(JobKind.INGEST_PATH, path, files[path].mtime_ns)
        for path in (*result.missing, *result.changed)
        if path in files and wanting.wants_a_job(open_.get(path), files[path])
    ]


def _settled(result: Survey, open_: Mapping[str, OpenJob]) -> list[str]:
    """Failed notes that are neither on the disk nor in the index any more: a look closes their failure."""
    return [
        path
        for path, job in open_.items()
        if job.status == "failed"
        and path not in result.listing.files
        and path not in result.indexed
        and result.listing.covers(path)
    ]


async def report(
    database: Database, surveys: Sequence[Survey], model: int | None, seconds: float
) -> DriftReport:
    """The drift of the surveyed folders as rows, one a path, the most telling cause for each."""
    rows: list[DriftRow] = []
    for result in surveys:
        async with database.connection() as connection:
            open_ = await open_jobs(connection, result.folder)
            other = await _other_model(connection, result.folder, model)
        rows += await asyncio.to_thread(_rows, result, open_, other)
    return DriftReport(
        at=datetime.now(UTC),
        rows=tuple(rows),
        files_on_disk=sum(len(result.listing.files) for result in surveys),
        files_in_index=sum(len(result.indexed) for result in surveys),
        seconds=seconds,
        problems=tuple(FolderProblem(r.folder.path, r.problem) for r in surveys if r.problem),
    )


async def _other_model(
    connection: AsyncConnection, folder: Folder, model: int | None
) -> dict[str, tuple[str, bool]]:
    """The files that have vectors of another model only: which, and whether those of this one are coming."""
    if model is None:
        return {}
    cursor = await connection.execute("SELECT count(*) FROM model WHERE id <> %s", (model,))
    row = await cursor.fetchone()
    if not row or not row[0]:
        return {}
    cursor = await connection.execute(_OTHER_MODEL, {"model": model, "folder": folder.id})
    return {path: (name, coming) for path, name, coming in await cursor.fetchall()}


def _rows(
    result: Survey, open_: Mapping[str, OpenJob], other: Mapping[str, tuple[str, bool]]
) -> list[DriftRow]:
    found: dict[str, DriftRow] = {}
    for cause, path, detail, since in _causes(result, open_, other):
        job = open_.get(path)
        comment, queued = "", False
        if cause is DriftCause.OTHER_MODEL:
            queued = other[path][1]
            comment = "; its vectors are waited for" if queued else ""
        elif job is not None and job.status != "failed":
            queued = True
            comment = "; a job waits for it" if job.status == "pending" else "; a job works on it"
        found.setdefault(path, DriftRow(cause, result.folder.path, path, detail + comment, since, queued))
    return sorted(found.values(), key=lambda row: (list(DriftCause).index(row.cause), row.path))


def _causes(
    result: Survey, open_: Mapping[str, OpenJob], other: Mapping[str, tuple[str, bool]]
) -> Iterator[tuple[DriftCause, str, str, datetime | None]]:
    """Every cause there is for a path, the most telling first."""
    files = result.listing.files
    for path, job in open_.items():
        if job.status == "failed":
            yield DriftCause.JOB_FAILED, path, job.error or "The last job failed.", job.finished_at
    for path in result.missing:
        yield DriftCause.NOT_INDEXED, path, "on the disk, not in the index", _since(files.get(path))
    for path in result.changed:
        outdated = result.indexed[path].outdated
        detail = "indexed by an older version" if outdated else "written since it was indexed"
        yield DriftCause.CHANGED, path, detail, _since(files.get(path))
    for path in result.orphaned:
        yield DriftCause.ORPHANED, path, "in the index, not on the disk", None
    for path, reason in result.listing.unreadable.items():
        if path:
            yield DriftCause.NOT_INDEXED, path, f"cannot be read: {reason}", None
    for path, (name, _) in other.items():
        yield DriftCause.OTHER_MODEL, path, f"has vectors of {name} and not of the model in use", None


def _since(stamp: disk.Stamp | None) -> datetime | None:
    if stamp is None:
        return None
    try:
        return datetime.fromtimestamp(stamp.mtime_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):
        return None  # a file dated outside the calendar


async def repair(database: Database, rows: Sequence[DriftRow], known: Sequence[Folder]) -> int:
    """Queue what mends the rows; a human asked, so deletions hold also under an empty root."""
    queued = 0
    async with database.transaction() as connection:
        for folder in known:
            mine = await asyncio.to_thread(_mendable, rows, folder)
            gone = [Wanted(JobKind.DELETE_PATH, row.path) for row in mine if row.cause is DriftCause.ORPHANED]
            read = [
                Wanted(JobKind.INGEST_PATH, row.path, int(row.since.timestamp() * 1e9) if row.since else 0)
                for row in mine
                if row.cause in {DriftCause.NOT_INDEXED, DriftCause.CHANGED, DriftCause.JOB_FAILED}
            ]
            queued += await jobs.enqueue(connection, folder.id, gone, confirmed=True) if gone else 0
            queued += await jobs.enqueue(connection, folder.id, read) if read else 0
            queued += await _again(
                connection, folder, [r.path for r in mine if r.cause is DriftCause.OTHER_MODEL]
            )
    return queued


def _mendable(rows: Sequence[DriftRow], folder: Folder) -> list[DriftRow]:
    """The rows of a folder without those that no job can mend: a name that is spelt because it is not
    UTF-8, or that is too long, waits for whoever renames it.
    """
    return [
        row
        for row in rows
        if row.folder == folder.path
        and (
            row.cause is not DriftCause.NOT_INDEXED
            or (disk.nameable(row.path) and os.path.lexists(folder.path / row.path))
        )
    ]


async def _again(connection: AsyncConnection, folder: Folder, paths: Sequence[str]) -> int:
    """Let the model in use try again what it failed on in these files."""
    if not paths:
        return 0
    await connection.execute(
        "UPDATE embedding SET state = 'pending', error = NULL FROM chunk JOIN file ON file.id = chunk.file"
        " WHERE embedding.passage = chunk.passage AND embedding.state = 'failed'"
        " AND file.folder = %s AND file.path = ANY(%s)",
        (folder.id, list(paths)),
    )
    return len(paths)
