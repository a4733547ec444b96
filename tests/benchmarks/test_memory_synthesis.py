"""Clustering 20,000 packets of one brain: from the rows to the clusters, and what the event loop feels of it."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from figures import Figure, show

from engine.brain.channels import channel_of
from engine.database.bulk import array
from engine.memory.brains import entered
from engine.models.embedding.bundled import DIMENSION, BundledEmbedder
from engine.text.vectors import vector_text
from tests.learning import HOME, mind_over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.database import Database
    from engine.settings import Settings
    from tests.learning import Mind

pytestmark = pytest.mark.benchmark

PACKETS, PORTION = 20_000, 1_000
KINDS = {"about 2,000 things": (2_000, 0.7), "each about something else": (PACKETS, 1.0)}
"""Centres and noise; the second is the most work: every packet stays alone."""

_TURNS = """
    WITH said AS (
        INSERT INTO entry (brain, channel, author, text, at)
        SELECT %(brain)s, %(channel)s, 'user', 'turn ' || n, now() FROM generate_series(1, %(count)s) AS n
        RETURNING id
    )
    INSERT INTO packet (brain, channel, input, kind, confidence, length, at)
    SELECT %(brain)s, %(channel)s, id, 'raw', 0.5, 2, now() FROM said ORDER BY id RETURNING id
"""
_VECTORS = """
    INSERT INTO packet_embedding (model, brain, packet, state, vector)
    SELECT %s, %s, packet, 'embedded', vector::halfvec FROM unnest(%s::integer[], %s::text[]) AS made (packet, vector)
"""


def turns(centres: int, noise: float) -> NDArray[np.float32]:
    """Vectors of length 1 around centres."""
    random = np.random.default_rng(1)
    points = random.normal(size=(centres, DIMENSION))[random.integers(centres, size=PACKETS)]
    points = points + noise * random.normal(size=(PACKETS, DIMENSION))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


async def fill(mind: Mind, vectors: NDArray[np.float32]) -> None:
    """Packets with these vectors in one brain."""
    (model,) = mind.lessons.models()
    async with entered(mind.database, HOME, make=True) as (connection, brain):
        channel = await channel_of(connection, brain, "talk")
        for start in range(0, PACKETS, PORTION):
            cursor = await connection.execute(_TURNS, {"brain": brain, "channel": channel, "count": PORTION})
            ids = array(row[0] for row in await cursor.fetchall())
            written = [vector_text(each) for each in vectors[start : start + PORTION].tolist()]
            await connection.execute(_VECTORS, (model, brain, ids, written))


async def longest_pause(watched: asyncio.Task[object]) -> float:
    """The longest the event loop was held up until the task was done, in seconds."""
    longest = 0.0
    while not watched.done():
        start = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - start - 0.001)
    return longest


@pytest.mark.parametrize("kind", KINDS)
async def test_clustering(database: Database, settings: Settings, kind: str) -> None:
    embedder = BundledEmbedder()
    async with mind_over(database, settings, embedder) as mind:
        await fill(mind, turns(*KINDS[kind]))
        gc.collect()
        gc.freeze()  # as the console does: what came before is no garbage
        start = time.perf_counter()
        running = asyncio.create_task(mind.synthesis.run(HOME, actor="benchmark"))
        pause = await longest_pause(running)
        run = await running
        seconds = time.perf_counter() - start
    gc.unfreeze()
    await embedder.close()
    assert run.packets_scanned == PACKETS
    show(
        Figure(
            f"clustering {PACKETS:,} packets {kind}",
            f"{seconds:.1f} s, {run.clusters:,} clusters kept",
            f"{PACKETS / seconds:,.0f} packets/s",
            "≤ 10 s",
            seconds <= 10,
        ),
        Figure(
            "the event loop meanwhile",
            f"held up for {pause * 1000:.0f} ms at most",
            "a key is drawn within 100 ms",
            "≤ 100 ms",
            pause <= 0.1,
        ),
    )
