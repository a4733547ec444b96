"""Memory under load: turns prepared in 200 brains of 500 packets, and turns recorded by eight clients at once."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from figures import Figure, data, median, percentile, show
from test_vectors import DIMENSION, clustered

from engine.brain.channels import NewEntry, channel_of
from engine.language import Language
from engine.memory import Memory, packets
from engine.memory.brains import entered
from engine.memory.model import BrainKey
from engine.models.embedding import open_embedder
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from engine import Engine
    from engine.models.embedding.base import Embedder

pytestmark = pytest.mark.benchmark

BRAINS, PACKETS, QUESTIONS = 200, 500, 400
CLIENTS, TURNS = 8, 2_000


def said() -> list[str]:
    """What was said in LoCoMo's conversations."""
    return [
        turn["text"]
        for each in json.loads(data("locomo/locomo10.json").read_text())
        for name, session in each["conversation"].items()
        if isinstance(session, list)
        for turn in session
    ]


def asked() -> list[str]:
    """What is asked about them."""
    conversations = json.loads(data("locomo/locomo10.json").read_text())
    return [qa["question"] for each in conversations for qa in each["qa"]]


@dataclass
class Known:
    """A model whose answers are there already: what it takes to embed a question is not measured here."""

    id: int
    embedder: Embedder
    vectors: Iterator[NDArray[np.float32]]
    dimension: int = DIMENSION

    @property
    def name(self) -> str:
        return self.embedder.model_id

    @property
    def making(self) -> Known:
        return self

    def answering(self) -> list[Known]:
        return [self]

    async def query(self, text: str) -> NDArray[np.float32]:
        return next(self.vectors)


async def fill(engine: Engine, model: int) -> None:
    """100,000 packets in 200 brains, each with its vector."""
    texts = itertools.cycle(said())
    vectors = iter(clustered(BRAINS * PACKETS, seed=5))
    begun = datetime(2024, 1, 1, tzinfo=UTC)
    for number in range(BRAINS):
        rows = [
            packets.NewPacket(NewEntry("user", next(texts), begun + timedelta(minutes=minute)))
            for minute in range(PACKETS)
        ]
        key = BrainKey(user=f"user{number}")
        async with entered(engine.database, key, make=True) as (connection, brain):
            into = await channel_of(connection, brain, "talk")
            kept = await packets.keep(connection, brain, into, packets.written(rows), [model])
            await connection.execute(
                "UPDATE packet_embedding AS kept SET state = 'embedded', vector = made.vector::halfvec"
                " FROM unnest(%s::integer[], %s::text[]) AS made (id, vector)"
                " WHERE kept.model = %s AND kept.brain = %s AND kept.packet = made.id",
                (kept, [vector_text(next(vectors).tolist()) for _ in kept], model, brain),
            )
    async with engine.database.connection() as connection:
        await connection.execute("SELECT refresh_memory_statistics()")


async def test_preparing_over_100_000_packets_in_200_brains(empty_engine: Engine) -> None:
    engine = empty_engine
    embedder = open_embedder(engine.settings)
    await embedder.ready()
    async with engine.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT register_model('benchmark', %s, 'bundled', 'benchmark')", (DIMENSION,)
        )
        (model,) = await cursor.fetchone() or (0,)
    await fill(engine, model)
    known = Known(model, embedder, itertools.cycle(clustered(QUESTIONS, seed=6)))
    memory = Memory(engine.database, engine.settings, known, Language(engine.database, engine.settings))
    chance = random.Random(7)
    waits, embeddings = [], []
    for question in chance.sample(asked(), QUESTIONS):
        key = BrainKey(user=f"user{chance.randrange(BRAINS)}")
        start = time.perf_counter()
        await memory.prepare(key, question)
        waits.append(time.perf_counter() - start)
    for question in chance.sample(asked(), 50):
        start = time.perf_counter()
        await embedder.query(question)
        embeddings.append(time.perf_counter() - start)
    await embedder.close()
    p95 = percentile(waits, 0.95)
    show(
        Figure(
            f"prepare over {BRAINS * PACKETS:,} packets in {BRAINS} brains, with row-level security",
            f"p50 {median(waits) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms",
            f"embedding a question takes {median(embeddings) * 1000:.1f} ms more",
            "p95 ≤ 40 ms",
            p95 <= 0.040,
        )
    )


async def test_recording_from_eight_clients(empty_engine: Engine) -> None:
    engine = empty_engine
    texts = itertools.cycle(said())
    await engine.notes.embedders.settle()
    memory = engine.memory
    tokens: list[tuple[BrainKey, str]] = []
    for number in range(TURNS):
        key = BrainKey(user=f"client{number % CLIENTS}")
        prepared = await memory.prepare(key, next(texts))
        assert prepared.turn_token is not None
        tokens.append((key, prepared.turn_token))
    embedding = asyncio.create_task(memory.embeddings.run())
    start = time.perf_counter()

    async def client(number: int) -> None:
        for key, token in tokens[number::CLIENTS]:
            await memory.record(key, token, next(texts))

    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(number))
    seconds = time.perf_counter() - start
    pending = [
        (await memory.metrics(BrainKey(user=f"client{each}"))).pending_embeddings for each in range(CLIENTS)
    ]
    await memory.embeddings.run_until_idle()
    drained = time.perf_counter() - start
    embedding.cancel()
    with suppress(asyncio.CancelledError):
        await embedding
    rate = TURNS / seconds
    show(
        Figure(
            f"turns recorded a second, {CLIENTS} clients at once, {TURNS:,} turns",
            f"{rate:.0f}",
            f"{TURNS - sum(pending):,} had their vectors by then, all after {drained:.0f} s",
            "≥ 200",
            rate >= 200,
        )
    )
