"""Writing the index: one transaction takes a batch of prepared notes, or nothing of it.

Preparing is done by any number of workers at once; writing is serialised by one advisory lock, so
that two writers can never both believe that a passage is new, or that it has lost its last place.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.database.bulk import as_json, every
from engine.notes import jobs, prepare
from engine.notes.model import FolderId, JobId
from engine.notes.prepare import Content, Gone, PassageText
from engine.text.ranking import posting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from psycopg import AsyncConnection

_COPY_CHUNK = 256 * 1024

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

_KNOWN_PASSAGES = """
    SELECT passage.id, passage.hash, passage.orphaned_at IS NOT NULL
    FROM json_to_recordset(%s::json) AS wanted (hash text)
    JOIN passage ON passage.hash = decode(wanted.hash, 'hex') AND passage.format = %s
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

_INSERT_PASSAGES = """
    INSERT INTO passage (hash, format, heading, text, length)
    SELECT decode(hash, 'hex'), %s, heading, text, length
    FROM json_to_recordset(%s::json) AS fresh (hash text, heading text, text text, length integer)
    RETURNING id, hash
"""

# The same text whose terms an older program made has the vectors already.
_INHERIT_VECTORS = """
    INSERT INTO embedding (model, passage, state, priority, vector)
    SELECT DISTINCT ON (embedding.model, fresh.id)
        embedding.model, fresh.id, embedding.state, embedding.priority, embedding.vector
    FROM passage AS fresh
    JOIN passage AS older ON older.hash = fresh.hash AND older.format <> fresh.format
    JOIN embedding ON embedding.passage = older.id AND embedding.state = 'embedded'
    WHERE fresh.id = ANY(%s)
    ORDER BY embedding.model, fresh.id
    ON CONFLICT DO NOTHING
"""

_INSERT_CHUNKS = """
    INSERT INTO chunk (file, position, line_start, line_end, passage)
    SELECT * FROM json_to_recordset(%s::json)
        AS placed (file integer, position integer, line_start integer, line_end integer, passage integer)
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
    SELECT %s, wanted.passage, max(wanted.priority)
    FROM json_to_recordset(%s::json) AS wanted (passage integer, priority bigint) GROUP BY wanted.passage
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


async def write(
    connection: AsyncConnection, worker: str, prepared: Sequence[Content | Gone], models: Sequence[int]
) -> Written:
    """Take prepared notes into the index and close their jobs, inside the caller's transaction.

    A job that is no longer this worker's (its lease lapsed, its folder was removed) is left out:
    somebody else has it. `models` are the embedding models that shall make vectors of them.
    """
    await connection.execute(_BEGIN)
    held = await _still_held(connection, worker, prepared)
    contents = [item for item in held if isinstance(item, Content) and item.places is not None]
    unchanged = [item for item in held if isinstance(item, Content) and item.places is None]
    gone = [item for item in held if isinstance(item, Gone)]

    touched = set(await _remove(connection, [(item.job.folder, item.job.path) for item in gone]))
    await _restamp(connection, unchanged)
    new = 0
    if contents:
        texts = {key: text for item in contents for key, text in item.passages.items()}
        ids, fresh = await _passages(connection, texts)
        new = len(fresh)
        touched |= await _places(connection, contents, ids)
        await _add_segment(connection, [(ids[key], texts[key]) for key in fresh])
        await _want_vectors(connection, models, contents, ids)
    if touched:
        await connection.execute(_ORPHAN, (sorted(touched),))
    await jobs.done(connection, worker, [item.job.id for item in held])
    return Written(len(contents), len(gone), new, len(unchanged))


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


async def _passages(
    connection: AsyncConnection, texts: Mapping[bytes, PassageText]
) -> tuple[dict[bytes, int], list[bytes]]:
    """The id of every passage, and the hashes of those that are new to the index."""
    wanted = await as_json({"hash": key.hex()} for key in texts)
    cursor = await connection.execute(_KNOWN_PASSAGES, (wanted, prepare.TERMS_FORMAT))
    rows = await every(cursor)
    ids = {row[1]: row[0] for row in rows}
    revived = [row[0] for row in rows if row[2]]
    if revived:
        await connection.execute("UPDATE passage SET orphaned_at = NULL WHERE id = ANY(%s)", (revived,))
    fresh = [key for key in texts if key not in ids]
    if fresh:
        rows_of = (
            {"hash": key.hex(), "heading": text.heading, "text": text.text, "length": text.length}
            for key, text in ((key, texts[key]) for key in fresh)
        )
        cursor = await connection.execute(_INSERT_PASSAGES, (prepare.TERMS_FORMAT, await as_json(rows_of)))
        ids.update({row[1]: row[0] for row in await every(cursor)})
        if prepare.TERMS_FORMAT > 1:
            await connection.execute(_INHERIT_VECTORS, ([ids[key] for key in fresh],))
    return ids, fresh


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
    cursor = await connection.execute(
        "DELETE FROM chunk WHERE file = ANY(%s) RETURNING passage", (list(files.values()),)
    )
    before = {row[0] for row in await cursor.fetchall()}
    rows = (
        {
            "file": files[item.job.folder, item.job.path],
            "position": position,
            "line_start": place.line_start,
            "line_end": place.line_end,
            "passage": ids[place.passage],
        }
        for item in contents
        for position, place in enumerate(item.places or ())
    )
    await connection.execute(_INSERT_CHUNKS, (await as_json(rows),))
    return before - {ids[key] for item in contents for key in item.passages}


async def _add_segment(connection: AsyncConnection, passages: Sequence[tuple[int, PassageText]]) -> None:
    # A passage without a word is in no posting: counted, it could never be taken out again.
    passages = [(identity, text) for identity, text in passages if text.length]
    if not passages:
        return
    cursor = await connection.execute(
        "INSERT INTO segment (passages, length) VALUES (%s, %s) RETURNING id",
        (len(passages), sum(text.length for _, text in passages)),
    )
    row = await cursor.fetchone()
    if row is None:
        raise AssertionError("INSERT … RETURNING gave no row")
    rows = await asyncio.to_thread(posting_rows, row[0], passages)
    async with connection.cursor().copy(
        "COPY posting (term, segment, data) FROM STDIN (FORMAT binary)"
    ) as copy:
        for start in range(0, len(rows), _COPY_CHUNK):
            await copy.write(rows[start : start + _COPY_CHUNK])


def posting_rows(segment: int, passages: Iterable[tuple[int, PassageText]]) -> bytes:
    """The postings of a segment in PostgreSQL's binary COPY format.

    Packed here and not row by row by the driver: a first indexing writes a million rows, and the
    event loop must not pay for them. Format: PostgreSQL documentation, COPY, "Binary Format".
    """
    buffers: dict[str, bytearray] = {}
    for passage, text in sorted(passages, key=lambda pair: pair[0]):
        length = text.length
        for term, count in text.terms.items():
            entry = posting(passage, length, count)
            buffer = buffers.get(term)
            if buffer is None:
                buffers[term] = bytearray(entry)
            else:
                buffer += entry
    parts: list[bytes | bytearray] = [b"PGCOPY\n\xff\r\n\0", struct.pack("!ii", 0, 0)]
    middle = struct.pack("!ii", 4, segment)
    for term, buffer in sorted(buffers.items()):
        word = term.encode()
        parts += (struct.pack("!hi", 3, len(word)), word, middle, struct.pack("!i", len(buffer)), buffer)
    parts.append(struct.pack("!h", -1))
    return b"".join(parts)


async def _want_vectors(
    connection: AsyncConnection, models: Sequence[int], contents: Sequence[Content], ids: Mapping[bytes, int]
) -> None:
    wanted = await as_json(
        {"passage": ids[key], "priority": item.stamp.mtime_ns} for item in contents for key in item.passages
    )
    for model in models:
        await connection.execute(_WANT_VECTORS, (model, wanted))
        await connection.execute(_WANT_SOONER, (wanted, model, model))


async def forget_folder(connection: AsyncConnection, folder: FolderId) -> None:
    """Remove a folder and all that the index holds of it; the disk is not touched."""
    await connection.execute(_BEGIN)
    # All at once: the foreign keys would see to the places too, but file by file.
    await connection.execute(
        "DELETE FROM chunk USING file WHERE file.folder = %s AND chunk.file = file.id", (folder,)
    )
    await connection.execute("DELETE FROM folder WHERE id = %s", (folder,))
    await connection.execute(_ORPHAN_ALL)
