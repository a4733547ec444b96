"""The evidence store: channels and their entries, which nothing ever changes.

Memory's packets point at entries, and so will episodes and citations: this is the one place where memory and
brain meet. Every call is made within a transaction that has entered a brain (`engine.memory.brains`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from psycopg import AsyncConnection


class Origin(StrEnum):
    """How what stands in a channel came here."""

    RECORDED = "recorded"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CHATGPT = "chatgpt"
    JSONL = "jsonl"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """What was said: who, when, what, and where from. `key` is what an import knows it by again."""

    author: str
    text: str
    at: datetime
    speaker: str = ""
    origin: str = ""
    key: str | None = None
    recalled: bool = False
    masked: int = 0


_CHANNEL = """
    WITH made AS (
        INSERT INTO channel (brain, name, kind) VALUES (%(brain)s, %(name)s, %(kind)s)
        ON CONFLICT (brain, name) DO NOTHING RETURNING id
    )
    SELECT id FROM made UNION ALL SELECT id FROM channel WHERE brain = %(brain)s AND name = %(name)s LIMIT 1
"""

_KNOWN = "SELECT key FROM entry WHERE brain = %s AND channel = %s AND key = ANY(%s)"


async def channel_of(
    connection: AsyncConnection, brain: int, name: str, kind: Origin = Origin.RECORDED
) -> int:
    """The id of a channel of the brain, which is made where there is none of that name."""
    parameters = {"brain": brain, "name": name, "kind": kind}
    while True:
        cursor = await connection.execute(_CHANNEL, parameters)
        row = await cursor.fetchone()
        if row is not None:  # none: another transaction made it after this statement began
            return int(row[0])


async def known_keys(
    connection: AsyncConnection, brain: int, channel: int, keys: Sequence[str]
) -> frozenset[str]:
    """Which of an import's keys are in the channel already."""
    cursor = await connection.execute(_KNOWN, (brain, channel, list(keys)))
    return frozenset(row[0] for row in await cursor.fetchall())
