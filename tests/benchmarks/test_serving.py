"""Searches over HTTP: what the door costs, and many clients at once beside a console."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from figures import Figure, median, percentile, show
from test_console import loop_lag
from test_searching import queries

from engine import Engine
from tests.http_clients import Outcome
from tui.app import NoctuaryApp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Installation

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).parents[2]
ALONE, TOGETHER, CLIENTS = 400, 10_000, 16


@contextlib.contextmanager
def serving(installation: Installation) -> Iterator[str]:
    """A server of the installation, with all that `noctuary serve` does; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", "serve", "--port", "0"],
        env={**installation.environment, "PYTHONPATH": str(ROOT)}, cwd=installation.notes.parent,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        for line in process.stdout:
            told = re.search(r"Serving on (http://[\d.:]+)", line)
            if told:
                break
        drain = subprocess.Popen(["cat"], stdin=process.stdout, stdout=subprocess.DEVNULL)
        assert told
        yield told[1]
    finally:
        process.terminate()
        process.wait(60)
        drain.wait(60)
        process.stdout.close()


async def asked(url: str, words: list[str], clients: int, searches: int) -> Outcome:
    """So many searches by clients that are a process of their own."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.http_clients", url, str(clients), str(searches),
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(json.dumps(words).encode())
    assert process.returncode == 0
    return Outcome(**json.loads(out))


async def words_of(installation: Installation) -> list[str]:
    """Runs and mixtures of 1 to 6 words as they stand in the notes."""
    engine = await Engine.open(installation.settings, application="benchmark")
    try:
        async with engine.database.connection() as connection:
            cursor = await connection.execute("SELECT id, text FROM passage WHERE orphaned_at IS NULL")
            return queries(dict(await cursor.fetchall()))
    finally:
        await engine.close()


async def test_what_the_door_costs(indexed: Installation) -> None:
    words = await words_of(indexed)
    with serving(indexed) as url:
        await asked(url, words, 1, 20)
        outcome = await asked(url, words, 1, ALONE)
    assert outcome.errors == []
    added = [wait - engine for wait, engine in zip(outcome.waits, outcome.engine, strict=True)]
    show(
        Figure(
            "what HTTP adds to a search, at the median",
            f"{median(added) * 1000:.1f} ms, p95 {percentile(added, 0.95) * 1000:.1f} ms",
            f"the engine's own {median(outcome.engine) * 1000:.0f} ms, {ALONE} searches one by one",
            "≤ 10 ms",
            median(added) <= 0.01,
        )
    )


async def test_many_clients_beside_a_console(indexed: Installation) -> None:
    words = await words_of(indexed)
    lags: list[float] = []
    with serving(indexed) as url:
        app = NoctuaryApp(indexed.settings)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("3")
            while app.engine is None:
                await asyncio.sleep(0.1)
            watching = asyncio.create_task(loop_lag(lags))
            outcome = await asked(url, words, CLIENTS, TOGETHER)
            watching.cancel()
            await pilot.press("q")
    p99 = percentile(lags, 0.99)
    show(
        Figure(
            f"{TOGETHER:,} searches by {CLIENTS} clients over HTTP",
            f"{len(outcome.errors)} errors, {len(outcome.waits) / outcome.seconds:.0f} a second, "
            f"p50 {median(outcome.waits) * 1000:.0f} ms, p99 {percentile(outcome.waits, 0.99) * 1000:.0f} ms",
            f"the engine's own p50 {median(outcome.engine) * 1000:.0f} ms; {outcome.found:,} citations",
            "no error",
            not outcome.errors and len(outcome.waits) == TOGETHER,
        ),
        Figure(
            "event loop lag of a console beside it",
            f"p50 {median(lags) * 1000:.1f} ms, p99 {p99 * 1000:.0f} ms, max {max(lags) * 1000:.0f} ms",
            f"{len(lags)} sleeps in {outcome.seconds:.0f} s",
            "p99 ≤ 50 ms, max ≤ 250 ms",
            p99 <= 0.05 and max(lags) <= 0.25,
        ),
    )
