"""Vector search over 100,000 vectors: recall against the exact scan, and completeness within a filter."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import numpy as np
import psycopg
import pytest
from figures import Figure, median, percentile, show
from numpy.typing import NDArray

from engine.notes import lists
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from conftest import Installation

    from engine import Engine

pytestmark = pytest.mark.benchmark

VECTORS, DIMENSION, QUERIES, NEAREST = 100_000, 384, 200, 10
Lookup = Callable[[NDArray[np.float32]], Awaitable[list[tuple[int, float]]]]


def clustered(count: int, seed: int) -> NDArray[np.float32]:
    """Vectors of length 1 that lie in clusters, as those of texts do."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(2_000, DIMENSION))
    points = centres[random.integers(len(centres), size=count)] + 0.7 * random.normal(size=(count, DIMENSION))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


async def fill(engine: Engine) -> tuple[int, int]:
    """A model of its own with 100,000 vectors, its index built after loading. Returns its (id, dimension)."""
    async with engine.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT register_model('benchmark', %s, 'bundled', 'benchmark')", (DIMENSION,)
        )
        (model,) = await cursor.fetchone() or (0,)
    host = engine.database._address.params["host"]
    vectors = clustered(VECTORS, seed=2)
    with psycopg.connect(
        host=host, user="noctuary_admin", dbname="noctuary", options="-c search_path=noctuary,public"
    ) as admin:
        admin.execute("SET maintenance_work_mem = '1GB'")
        definition = admin.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = %s", (f"embedding_vector_{model}",)
        ).fetchone()
        admin.execute(f"DROP INDEX embedding_vector_{model}")
        admin.execute(
            "INSERT INTO passage (hash, heading, text, length)"
            " SELECT sha256(('benchmark' || n)::bytea), '', 'benchmark ' || n, 2 FROM generate_series(1, %s) n",
            (VECTORS,),
        )
        ids = [
            row[0]
            for row in admin.execute("SELECT id FROM passage WHERE text LIKE 'benchmark %' ORDER BY id")
        ]
        with admin.cursor().copy("COPY embedding (model, passage, state, vector) FROM STDIN") as copy:
            for identity, vector in zip(ids, vectors, strict=True):
                copy.write_row((model, identity, "embedded", vector_text(vector.tolist())))
        assert definition is not None
        admin.execute(definition[0])
        admin.execute("ANALYZE embedding")
    return model, DIMENSION


async def measure(lookup: Lookup, exact: Lookup) -> tuple[float, float, list[float]]:
    """Recall@10 of a lookup against the exact scan, the scan's median and the lookup's seconds."""
    hits, waits, scans = 0, [], []
    for query in clustered(QUERIES, seed=3):
        start = time.perf_counter()
        found = await lookup(query)
        waits.append(time.perf_counter() - start)
        start = time.perf_counter()
        right = await exact(query)
        scans.append(time.perf_counter() - start)
        reach = right[-1][1] + 1e-6
        hits += sum(1 for _, distance in found if distance <= reach)
        assert len(found) == NEAREST, "the list is not complete"
    return hits / (QUERIES * NEAREST), median(scans), waits


async def test_vector_search(engine: Engine, indexed: Installation) -> None:
    model = await fill(engine)
    async with engine.database.connection() as connection:
        cursor = await connection.execute("SELECT passage FROM embedding WHERE model = %s", (model[0],))
        every = np.array([row[0] for row in await cursor.fetchall()], dtype=np.int32)
    percent = np.sort(np.random.default_rng(4).choice(every, size=VECTORS // 100, replace=False)).astype(
        np.int32
    )
    third = np.sort(np.random.default_rng(5).choice(every, size=VECTORS // 3, replace=False)).astype(np.int32)

    async def nearest(
        query: NDArray[np.float32], only: NDArray[np.int32] | None = None
    ) -> list[tuple[int, float]]:
        async with engine.database.transaction() as connection:
            return await lists.by_vector(connection, model, query, only, NEAREST)

    async def scan(query: NDArray[np.float32], only: NDArray[np.int32] = every) -> list[tuple[int, float]]:
        async with engine.database.transaction() as connection:
            return await lists.distances(connection, model[0], query, only.tolist(), NEAREST)

    await nearest(clustered(1, seed=6)[0])
    recall, scanned, waits = await measure(nearest, scan)
    narrow, narrow_scanned, narrow_waits = await measure(
        lambda query: nearest(query, percent), lambda query: scan(query, percent)
    )
    wide, _, wide_waits = await measure(lambda query: nearest(query, third), lambda query: scan(query, third))
    show(
        row("vector search, 100,000 vectors", recall, waits, scanned, 0.99),
        row("the same with a filter matching 1 %", narrow, narrow_waits, narrow_scanned, 1.0),
        row("the same with a filter matching a third", wide, wide_waits, scanned, 0.99),
    )


def row(what: str, recall: float, waits: list[float], scanned: float, least: float) -> Figure:
    """One row of the table."""
    p95 = percentile(waits, 0.95)
    return Figure(
        what,
        f"recall@10 {recall:.4f}, p50 {median(waits) * 1000:.1f} ms, p95 {p95 * 1000:.1f} ms",
        f"exact scan {scanned * 1000:.0f} ms",
        f"≥ {least}, p95 ≤ 20 ms",
        recall >= least and p95 <= 0.02,
    )
