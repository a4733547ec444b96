"""Many rows to the database and back without the event loop paying for them.

The driver turns arrays into its wire format value by value on the loop: ten thousand paths hold the
screen up for a quarter of a second. Here they go as one JSON text, made in a thread, and come back in
portions between which the loop turns.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, LiteralString

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from psycopg import AsyncConnection, AsyncCursor

COPY_CHUNK = 256 * 1024
"""Bytes handed to COPY between two turns of the loop."""

PORTION = 500
"""Rows taken from a result between two turns of the loop: about two milliseconds."""


_encode = json.JSONEncoder(ensure_ascii=False).encode


async def as_json(rows: Iterable[Mapping[str, object]]) -> str:
    """Rows for `json_to_recordset`, a mapping of columns each; `rows` is run through in a thread."""
    return await asyncio.to_thread(_array, rows)


def _array(rows: Iterable[Mapping[str, object]]) -> str:
    """A JSON array, encoded row by row: in one call the encoder would keep the interpreter to itself."""
    return "[" + ",".join([_encode(row) for row in rows]) + "]"


def array(ids: Iterable[int]) -> str:
    """Ids for a parameter with the cast `::integer[]`: many, where the driver's own lists are for few."""
    return f"{{{','.join(map(str, ids))}}}"


async def every(cursor: AsyncCursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """All rows of a result."""
    rows: list[tuple[Any, ...]] = []
    while portion := await cursor.fetchmany(PORTION):
        rows += portion
        await asyncio.sleep(0)
    return rows


async def copy(connection: AsyncConnection, into: LiteralString, rows: bytes) -> None:
    """Rows in PostgreSQL's binary COPY format; `into` names the table and its columns."""
    async with connection.cursor().copy(f"COPY {into} FROM STDIN (FORMAT binary)") as copying:
        for start in range(0, len(rows), COPY_CHUNK):
            await copying.write(rows[start : start + COPY_CHUNK])
