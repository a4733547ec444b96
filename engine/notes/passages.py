"""Passages that are new to the index, with their postings: made beforehand, written under the lock.

Ids are reserved, so that rows and postings are ready when the writers' lock is taken. If somebody else
wrote one of the passages meanwhile, it is taken out again; its id is never used.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.database.bulk import copy, every
from engine.notes import prepare
from engine.notes.packing import Postings, passage_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray
    from psycopg import AsyncConnection

    from engine.notes.prepare import PassageText

    Texts = Mapping[bytes, PassageText]

# The hashes come as one value after another: a list would cost the event loop a conversion each. LATERAL,
# since a join by hash would read every text of a young index to find a few.
_KNOWN = """
    SELECT known.id, known.hash, known.orphaned_at IS NOT NULL
    FROM generate_series(0, %(last)s::integer) AS at, LATERAL (
        SELECT id, hash, orphaned_at FROM passage
        WHERE hash = substr(%(hashes)s::bytea, at * 32 + 1, 32) AND format = %(format)s LIMIT 1
    ) AS known
"""

_RESERVE = """
    SELECT nextval('segment_id_seq'),
        ARRAY(SELECT nextval('passage_id_seq') FROM generate_series(1, %s))
"""

_ADD_SEGMENT = "INSERT INTO segment (id, passages, length) OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s)"

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


@dataclass(frozen=True, slots=True)
class Draft:
    """What shall be written of passages that the index lacks: their ids, rows and postings."""

    texts: Texts
    ids: Mapping[bytes, int]
    segment: int
    postings: Postings
    passage_rows: bytes
    posting_rows: bytes

    @classmethod
    async def make(cls, connection: AsyncConnection, texts: Texts) -> Draft:
        """Of those of the passages that the index lacks. Nothing is written, but ids are reserved."""
        known, _ = await _known(connection, texts)
        fresh = [key for key in texts if key not in known]
        if not fresh:
            return await asyncio.to_thread(cls._of, texts, {}, 0)
        cursor = await connection.execute(_RESERVE, (len(fresh),))
        row = await cursor.fetchone()
        if row is None:
            raise AssertionError("nextval gave no row")
        return await asyncio.to_thread(cls._of, texts, dict(zip(fresh, row[1], strict=True)), row[0])

    @classmethod
    def _of(cls, texts: Texts, ids: Mapping[bytes, int], segment: int) -> Draft:
        postings = Postings.of([texts[key] for key in ids])
        rows = postings.rows(segment, _array(ids.values(), len(ids)))
        return cls(texts, ids, segment, postings, _rows(texts, ids), rows)

    def _only(self, wanted: AbstractSet[bytes]) -> Draft:
        """The same of fewer passages."""
        ids = {key: identity for key, identity in self.ids.items() if key in wanted}
        rows = self.postings.rows(self.segment, _array((ids.get(key, 0) for key in self.ids), len(self.ids)))
        return Draft(self.texts, ids, self.segment, self.postings, _rows(self.texts, ids), rows)

    async def write(
        self, connection: AsyncConnection, wanted: AbstractSet[bytes]
    ) -> tuple[dict[bytes, int], Mapping[bytes, int]]:
        """Write those of the wanted passages that the index lacks still, under the writers' lock.

        Returns the id of each wanted passage, and the same of those that were new.
        """
        known, orphans = await _known(connection, wanted)
        if orphans:
            await connection.execute("UPDATE passage SET orphaned_at = NULL WHERE id = ANY(%s)", (orphans,))
        missing = wanted - known.keys()
        draft = self
        if missing - self.ids.keys():  # one was removed since: very rare
            draft = await Draft.make(connection, {key: self.texts[key] for key in missing})
        elif missing != self.ids.keys():
            draft = await asyncio.to_thread(self._only, missing)
        if not missing:
            return known, {}
        await _copy(connection, draft)
        return {**known, **draft.ids}, draft.ids


async def _copy(connection: AsyncConnection, draft: Draft) -> None:
    await copy(connection, "passage (id, hash, format, heading, text, length)", draft.passage_rows)
    if prepare.TERMS_FORMAT > 1:
        await connection.execute(_INHERIT_VECTORS, (list(draft.ids.values()),))
    # A passage without a word is in no posting: counted, it could never be taken out again.
    lengths = [length for key in draft.ids if (length := draft.texts[key].length)]
    if lengths:
        await connection.execute(_ADD_SEGMENT, (draft.segment, len(lengths), sum(lengths)))
        await copy(connection, "posting (term, segment, data)", draft.posting_rows)


async def _known(
    connection: AsyncConnection, hashes: Collection[bytes]
) -> tuple[dict[bytes, int], list[int]]:
    """The ids of the passages that the index has, and which of them no file held until now."""
    cursor = await connection.execute(
        _KNOWN, {"last": len(hashes) - 1, "hashes": b"".join(hashes), "format": prepare.TERMS_FORMAT}
    )
    rows = await every(cursor)
    return {row[1]: row[0] for row in rows}, [row[0] for row in rows if row[2]]


def _rows(texts: Texts, ids: Mapping[bytes, int]) -> bytes:
    return passage_rows(prepare.TERMS_FORMAT, [(identity, texts[key]) for key, identity in ids.items()])


def _array(ids: Iterable[int], number: int) -> NDArray[np.int32]:
    return np.fromiter(ids, dtype=np.int32, count=number)
