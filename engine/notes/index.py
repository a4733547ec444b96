"""Writing the index: one transaction takes a batch of prepared notes, or nothing of it.

Preparing is done by any number of workers at once; writing is serialised by one advisory lock, so
that two writers can never both believe that a passage is new, or that it has lost its last place. What
can be made of a batch beforehand is made before that lock is taken (`draft`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.database.bulk import as_json, copy, every
from engine.notes import jobs, prepare
from engine.notes.model import FolderId, JobId
from engine.notes.packing import pending_rows, place_rows
from engine.notes.passages import Draft
from engine.notes.prepare import Content, Gone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg import AsyncConnection

# The index can be rebuilt from the disk at any time, so it need not wait for the platter.
_BEGIN = """
    SELECT set_config('synchronous_commit', 'off', true),
        pg_advisory_xact_lock(hashtextextended('noctuary:index', 0))
"""

# Bytes that an older program indexed are as good as unknown. A newer one's are not: two programs on one
# database shall not undo each other's work for ever.
_KNOWN_HASHES = """
    SELECT file.folder, file.path, file.hash
    FROM file, unnest(%s::integer[], %s::text[]) AS wanted (folder, path)
    WHERE file.folder = wanted.folder AND file.path = wanted.path AND file.format >= %s
"""

_UPSERT_FILES = """
    INSERT INTO file (folder, path, hash, size, mtime_ns, ctime_ns, format)
    SELECT *, %s::smallint
    FROM unnest(%s::integer[], %s::text[], %s::bytea[], %s::bigint[], %s::bigint[], %s::bigint[])
    ON CONFLICT (folder, path) DO UPDATE SET hash = excluded.hash, size = excluded.size,
        mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, format = excluded.format,
        indexed_at = now()
    RETURNING id, folder, path
"""

_RESTAMP = """
    UPDATE file SET size = fresh.size, mtime_ns = fresh.mtime_ns, ctime_ns = fresh.ctime_ns
    FROM unnest(%s::integer[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[])
        AS fresh (folder, path, size, mtime_ns, ctime_ns)
    WHERE file.folder = fresh.folder AND file.path = fresh.path
"""

_EMPTY_FILES = """
    DELETE FROM chunk USING file, unnest(%s::integer[], %s::text[]) AS gone (folder, path)
    WHERE file.folder = gone.folder AND file.path = gone.path AND chunk.file = file.id
    RETURNING chunk.passage
"""

_DELETE_FILES = """
    DELETE FROM file USING unnest(%s::integer[], %s::text[]) AS gone (folder, path)
    WHERE file.folder = gone.folder AND file.path = gone.path
"""

_ORPHAN = """
    UPDATE passage SET orphaned_at = now()
    WHERE id = ANY(%s) AND NOT EXISTS (SELECT FROM chunk WHERE chunk.passage = passage.id)
"""

_ORPHAN_ALL = """
    UPDATE passage SET orphaned_at = now()
    WHERE orphaned_at IS NULL AND NOT EXISTS (SELECT FROM chunk WHERE chunk.passage = passage.id)
"""

_WANT_VECTORS = """
    INSERT INTO embedding (model, passage, priority)
    SELECT %s, wanted.passage, wanted.priority
    FROM json_to_recordset(%s::json) AS wanted (passage integer, priority bigint)
    ON CONFLICT DO NOTHING
"""

# A passage whose vector is being made right now is locked: it is left alone, not waited for.
_WANT_SOONER = """
    WITH free AS (
        SELECT embedding.passage, wanted.priority
        FROM embedding JOIN json_to_recordset(%s::json) AS wanted (passage integer, priority bigint)
            ON embedding.passage = wanted.passage
        WHERE embedding.model = %s AND embedding.state = 'pending' AND embedding.priority < wanted.priority
        FOR UPDATE OF embedding SKIP LOCKED
    )
    UPDATE embedding SET priority = free.priority FROM free
    WHERE embedding.model = %s AND embedding.passage = free.passage
"""


@dataclass(frozen=True, slots=True)
class Batch:
    """Prepared notes, and what was made of them for the database."""

    items: Sequence[Content | Gone]
    draft: Draft


@dataclass(frozen=True, slots=True)
class Written:
    """What one transaction did."""

    files: int
    deleted: int
    new_passages: int
    unchanged: int


async def known_hashes(
    connection: AsyncConnection, claimed: Sequence[jobs.Claimed]
) -> dict[tuple[int, str], bytes]:
    """The sha256 the index has of each claimed path that it knows, if not from an older program."""
    cursor = await connection.execute(
        _KNOWN_HASHES,
        ([job.folder for job in claimed], [job.path for job in claimed], prepare.FORMAT),
    )
    return {(row[0], row[1]): row[2] for row in await cursor.fetchall()}


async def draft(connection: AsyncConnection, prepared: Sequence[Content | Gone]) -> Batch:
    """Make all of a batch that can be made before the writers' lock is taken."""
    texts = {key: text for item in _changed(prepared) for key, text in item.passages.items()}
    return Batch(prepared, await Draft.make(connection, texts))


async def write(connection: AsyncConnection, worker: str, batch: Batch, models: Sequence[int]) -> Written:
    """Take prepared notes into the index and close their jobs, inside the caller's transaction.

    A job that is no longer this worker's (its lease lapsed, its folder was removed) is left out:
    somebody else has it. `models` are the embedding models that shall make vectors of them.
    """
    await connection.execute(_BEGIN)
    held = await _still_held(connection, worker, batch.items)
    contents = _changed(held)
    unchanged = [item for item in held if isinstance(item, Content) and item.places is None]
    gone = [item for item in held if isinstance(item, Gone)]

    touched = set(await _remove(connection, [(item.job.folder, item.job.path) for item in gone]))
    await _restamp(connection, unchanged)
    new: Mapping[bytes, int] = {}
    if contents:
        ids, new = await batch.draft.write(connection, {key for item in contents for key in item.passages})
        touched |= await _places(connection, contents, ids)
        await _want_vectors(connection, models, contents, ids, new)
    if touched:
        await connection.execute(_ORPHAN, (sorted(touched),))
    await jobs.done(connection, worker, [item.job.id for item in held])
    return Written(len(contents), len(gone), len(new), len(unchanged))


def _changed(items: Sequence[Content | Gone]) -> list[Content]:
    """The notes whose text is not as it is indexed."""
    return [item for item in items if isinstance(item, Content) and item.places is not None]


async def _still_held(
    connection: AsyncConnection, worker: str, prepared: Sequence[Content | Gone]
) -> list[Content | Gone]:
    cursor = await connection.execute(
        "SELECT id FROM job WHERE id = ANY(%s) AND status = 'processing' AND worker = %s"
        " ORDER BY id FOR UPDATE",
        ([item.job.id for item in prepared], worker),
    )
    held = {JobId(row[0]) for row in await cursor.fetchall()}
    return [item for item in prepared if item.job.id in held]


async def _remove(connection: AsyncConnection, paths: Sequence[tuple[FolderId, str]]) -> list[int]:
    """Delete files with their places; returns the passages that stood there."""
    if not paths:
        return []
    columns = ([folder for folder, _ in paths], [path for _, path in paths])
    cursor = await connection.execute(_EMPTY_FILES, columns)
    passages = [row[0] for row in await cursor.fetchall()]
    await connection.execute(_DELETE_FILES, columns)
    return passages


async def _restamp(connection: AsyncConnection, unchanged: Sequence[Content]) -> None:
    if unchanged:
        await connection.execute(
            _RESTAMP,
            (
                [item.job.folder for item in unchanged],
                [item.job.path for item in unchanged],
                [item.stamp.size for item in unchanged],
                [item.stamp.mtime_ns for item in unchanged],
                [item.stamp.ctime_ns for item in unchanged],
            ),
        )


async def _places(
    connection: AsyncConnection, contents: Sequence[Content], ids: Mapping[bytes, int]
) -> set[int]:
    """Write files and their places; returns passages that stood in them before and do no more."""
    cursor = await connection.execute(
        _UPSERT_FILES,
        (
            prepare.FORMAT,
            [item.job.folder for item in contents],
            [item.job.path for item in contents],
            [item.hash for item in contents],
            [item.stamp.size for item in contents],
            [item.stamp.mtime_ns for item in contents],
            [item.stamp.ctime_ns for item in contents],
        ),
    )
    files = {(row[1], row[2]): row[0] for row in await cursor.fetchall()}
    placed = [_placed(item, files[item.job.folder, item.job.path], ids) for item in contents]
    before = await _places_before(connection, list(files.values()))
    changed = [each for each in placed if each.rows != before.get(each.file)]
    moved = [each.file for each in changed if each.file in before]
    if moved:
        await connection.execute("DELETE FROM chunk WHERE file = ANY(%s)", (moved,))
    rows = place_rows(
        [each.file for each in changed],
        [len(each.rows) for each in changed],
        [row for each in changed for row in each.rows],
    )
    await copy(connection, "chunk (file, position, line_start, line_end, passage)", rows)
    left = {row[2] for file in moved for row in before[file]}
    return left - {ids[key] for item in contents for key in item.passages}


@dataclass(frozen=True, slots=True)
class _Placed:
    """The places of a file in their order: (line_start, line_end, passage)."""

    file: int
    rows: list[tuple[int, int, int]]


def _placed(item: Content, file: int, ids: Mapping[bytes, int]) -> _Placed:
    return _Placed(
        file, [(place.line_start, place.line_end, ids[place.passage]) for place in item.places or ()]
    )


async def _places_before(
    connection: AsyncConnection, files: Sequence[int]
) -> dict[int, list[tuple[int, int, int]]]:
    """The places that the index has of files: a note chunked as before keeps its rows."""
    cursor = await connection.execute(
        "SELECT file, line_start, line_end, passage FROM chunk WHERE file = ANY(%s) ORDER BY file, position",
        (files,),
    )
    found: dict[int, list[tuple[int, int, int]]] = {}
    for file, *place in await every(cursor):
        found.setdefault(file, []).append((place[0], place[1], place[2]))
    return found


async def _want_vectors(
    connection: AsyncConnection,
    models: Sequence[int],
    contents: Sequence[Content],
    ids: Mapping[bytes, int],
    new: Mapping[bytes, int],
) -> None:
    priorities: dict[int, int] = {}
    for item in contents:
        for key in item.passages:
            priorities[ids[key]] = max(item.stamp.mtime_ns, priorities.get(ids[key], 0))
    # What is new has no vector yet, and needs no look; unless it took over those of an older program's.
    fresh = set(new.values()) if prepare.TERMS_FORMAT == 1 else set()
    first = {passage: priority for passage, priority in priorities.items() if passage in fresh}
    others = await as_json(
        {"passage": passage, "priority": priority}
        for passage, priority in priorities.items()
        if passage not in fresh
    )
    for model in models:
        if first:
            await copy(connection, "embedding (model, passage, priority)", pending_rows(model, first))
        if len(first) < len(priorities):
            await connection.execute(_WANT_VECTORS, (model, others))
            await connection.execute(_WANT_SOONER, (others, model, model))


async def forget_folder(connection: AsyncConnection, folder: FolderId) -> None:
    """Remove a folder and all that the index holds of it; the disk is not touched."""
    await connection.execute(_BEGIN)
    # All at once: the foreign keys would see to the places too, but file by file.
    await connection.execute(
        "DELETE FROM chunk USING file WHERE file.folder = %s AND chunk.file = file.id", (folder,)
    )
    await connection.execute("DELETE FROM folder WHERE id = %s", (folder,))
    await connection.execute(_ORPHAN_ALL)
