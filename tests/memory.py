"""Turns put into brains without a gate, for tests of what comes after."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.brain.channels import NewEntry, channel_of
from engine.memory import packets
from engine.memory.brains import entered
from engine.memory.model import BrainKey, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.database import Database


async def remembered(
    database: Database,
    text: str,
    key: BrainKey | None = None,
    *,
    response: str = "",
    kind: Kind = Kind.RAW,
    channel: str = "talk",
    at: datetime | None = None,
    models: Sequence[int] = (),
) -> int:
    """Keep one turn. Returns the brain's id."""
    at = at or datetime.now(UTC)
    packet = packets.NewPacket(
        NewEntry("user", text, at), NewEntry("assistant", response, at) if response else None, kind
    )
    async with entered(database, key or BrainKey(), make=True) as (connection, brain):
        into = await channel_of(connection, brain, channel)
        await packets.keep(connection, brain, into, packets.written([packet]), models)
    return brain
