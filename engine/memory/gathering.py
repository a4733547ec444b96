"""Gathering: the packets that no synthesis has seen become clusters that wait for a distiller.

All of it is written in one transaction: a run that dies before has left nothing, and is repeated; after it,
its clusters wait. Packets without a vector of the answering model are left for the next run.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from engine.database.bulk import array, every
from engine.errors import SynthesisBusy
from engine.memory.clustering import THRESHOLD, Group, cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.memory.meaning import Served
    from engine.memory.model import BrainId
    from engine.models.embedding.base import Vectors

MOST_PACKETS = 50_000
"""Packets of one run, the oldest: what is left is the next one's. It bounds time and memory (75 MB)."""

HEADER = 4
"""Bytes before the numbers of a halfvec as the database sends it."""

# A packet that the model failed on never gets a vector: it is seen, and kept where it is a correction.
_UNSEEN = """
    SELECT packet.id, packet.kind = 'correction', halfvec_send(known.vector)
    FROM packet JOIN packet_embedding AS known ON known.brain = packet.brain AND known.packet = packet.id
        AND known.model = %(model)s AND known.state IN ('embedded', 'failed')
    WHERE packet.brain = %(brain)s AND packet.run IS NULL AND NOT packet.recalled
        AND packet.kind <> 'overwrite'
    ORDER BY packet.id LIMIT %(limit)s
"""

_LEFT = """
    SELECT count(*) FROM packet WHERE brain = %s AND run IS NULL AND NOT recalled AND kind <> 'overwrite'
"""

_SEEN = """
    UPDATE packet SET run = %(run)s
    WHERE brain = %(brain)s AND id = ANY(%(packets)s::integer[]) AND run IS NULL
"""

_CLUSTERS = """
    INSERT INTO cluster (brain, run, corrections, packets, cohesion)
    SELECT %(brain)s, %(run)s, corrections, packets, cohesion
    FROM json_to_recordset(%(clusters)s::json)
        AS new (place integer, corrections integer, packets integer, cohesion real)
    ORDER BY place RETURNING id
"""

_MEMBERS = """
    INSERT INTO cluster_packet (brain, cluster, packet)
    SELECT %s, cluster, packet::integer
    FROM ROWS FROM (unnest(%s::integer[]), json_array_elements(%s::json)) AS made (cluster, packets)
    CROSS JOIN LATERAL json_array_elements_text(packets) AS packet
"""


class Unseen(NamedTuple):
    """A packet that no synthesis has seen, with its vector as the database sends it (None: it has none)."""

    packet: int
    correction: bool
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a run looks at: packets in order, which of them are corrections, and the groups they fall into."""

    packets: tuple[int, ...] = ()
    corrections: frozenset[int] = frozenset()
    groups: tuple[Group, ...] = ()
    """By places in `packets`; only those that are kept."""


async def unseen(connection: AsyncConnection, brain: BrainId, model: Served) -> tuple[list[Unseen], int]:
    """What is new in the brain, the oldest first, and how many packets are left for another run."""
    parameters = {"brain": brain, "model": model.id, "limit": MOST_PACKETS}
    cursor = connection.cursor(binary=True)
    rows = [Unseen(*row) for row in await every(await cursor.execute(_UNSEEN, parameters))]
    return rows, await left(connection, brain) - len(rows)


async def left(connection: AsyncConnection, brain: BrainId) -> int:
    """How many packets of the brain no synthesis has seen."""
    row = await (await connection.execute(_LEFT, (brain,))).fetchone()
    return int(row[0]) if row else 0


async def grouped(rows: Sequence[Unseen], model: Served) -> Gathered:
    """The groups that what is new falls into. It takes seconds for tens of thousands, in a thread."""
    packets = tuple(row.packet for row in rows)
    corrections = frozenset(row.packet for row in rows if row.correction)
    groups = await asyncio.to_thread(_groups, rows, model.dimension, _threshold(model)) if rows else []
    kept = tuple(group for group in groups if _is_kept(group, packets, corrections))
    return Gathered(packets, corrections, kept)


async def write(connection: AsyncConnection, brain: BrainId, run: int, gathered: Gathered) -> None:
    """Mark the packets as seen by the run, and keep the clusters.

    Raises:
        SynthesisBusy: another run has seen some of them meanwhile.
    """
    seen, clusters, members = await asyncio.to_thread(_written, gathered)
    cursor = await connection.execute(_SEEN, {"brain": brain, "run": run, "packets": seen})
    if cursor.rowcount != len(gathered.packets):
        raise SynthesisBusy("Another process has learned from these turns meanwhile.", remedy="Run it again.")
    cursor = await connection.execute(_CLUSTERS, {"brain": brain, "run": run, "clusters": clusters})
    made = [row[0] for row in await cursor.fetchall()]
    await connection.execute(_MEMBERS, (brain, array(made), members))


def _written(gathered: Gathered) -> tuple[str, str, str]:
    """The packets, the clusters and the members of these as the statements take them. Runs in a thread."""
    members = [[gathered.packets[place] for place in group.members] for group in gathered.groups]
    clusters = [
        {
            "place": place,
            "corrections": len(gathered.corrections.intersection(ids)),
            "packets": len(ids),
            "cohesion": group.cohesion,
        }
        for place, (group, ids) in enumerate(zip(gathered.groups, members, strict=True))
    ]
    return array(gathered.packets), json.dumps(clusters), json.dumps(members)


def _threshold(model: Served) -> float:
    """The cosine at which packets are near enough, in the model's own measure of nearness."""
    return 1 - model.embedder.unrelated_distance * (1 - THRESHOLD)


def _groups(rows: Sequence[Unseen], dimension: int, threshold: float) -> list[Group]:
    """Runs in a thread."""
    meant = [place for place, row in enumerate(rows) if row.vector is not None]
    vectors = _unpacked([rows[place].vector or b"" for place in meant], dimension)
    groups = [
        Group(tuple(meant[member] for member in group.members), group.cohesion)
        for group in cluster(vectors, threshold)
    ]
    return groups + [Group((place,), 1.0) for place, row in enumerate(rows) if row.vector is None]


def _unpacked(sent: Sequence[bytes], dimension: int) -> Vectors:
    """Vectors of length 1 from what the database sends: half-precision numbers, the high byte first."""
    halves = np.frombuffer(b"".join(each[HEADER:] for each in sent), ">f2")
    vectors = halves.reshape(-1, dimension).astype(np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return cast("Vectors", vectors / np.maximum(lengths, 1e-9, dtype=np.float32))


def _is_kept(group: Group, packets: Sequence[int], corrections: frozenset[int]) -> bool:
    """Whether it may teach something: what was said twice, or corrected."""
    return len(group.members) > 1 or packets[group.members[0]] in corrections
