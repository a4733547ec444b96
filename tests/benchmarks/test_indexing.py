"""How long until words are found: a first indexing, a second start, and a saved file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from typing import TYPE_CHECKING

import pytest
from figures import Figure, fresh, median, percentile, show

from engine import Engine
from engine.notes import disk
from engine.notes.chunking import chunk, decode
from engine.notes.model import Mode
from engine.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Installation

pytestmark = pytest.mark.benchmark

SAVES = 60


def read_hash_chunk(root: Path) -> tuple[int, float]:
    """The yardstick of a first indexing: what must be done whatever stores it. Files and seconds."""
    start = time.perf_counter()
    files = disk.listing(root).files
    for path in files:
        raw = (root / path).read_bytes()
        hashlib.sha256(raw).digest()
        chunk(decode(raw))
    return len(files), time.perf_counter() - start


def walk(root: Path) -> float:
    """The yardstick of a second start: one `os.walk` with a stat of each file. Seconds."""
    start = time.perf_counter()
    for folder, _, names in os.walk(root):
        for name in names:
            os.stat(f"{folder}/{name}")  # noqa: PTH116  the yardstick is the plain system call
    return time.perf_counter() - start


async def test_first_indexing_and_second_start(installation: Installation, tmp_path: Path) -> None:
    settings = Settings.load(fresh(tmp_path), cwd=tmp_path)
    count, bare = read_hash_chunk(installation.notes)
    start = time.perf_counter()
    engine = await Engine.open(settings, application="benchmark")
    await engine.notes.add_folder(installation.notes)
    await engine.notes.index_all()
    await engine.notes.work_until_idle(embed=False)
    taken = time.perf_counter() - start
    status = await engine.notes.status()
    failed = await engine.notes.job_counts()
    await engine.close()
    assert status.index is not None

    walked = median([walk(installation.notes) for _ in range(5)])
    starts = []
    for _ in range(3):
        begin = time.perf_counter()
        engine = await Engine.open(settings, application="benchmark")
        report = await engine.notes.drift()
        starts.append(time.perf_counter() - begin)
        await engine.close()
        assert not report.rows
    again = median(starts)
    show(
        Figure(
            f"{status.index.files} files found by keyword, from an empty database",
            f"{taken:.1f} s = {taken / bare:.1f} ×",
            f"reading, hashing and chunking them {bare:.2f} s; {status.index.chunks} chunks",
            "≤ 40 ×",
            taken <= 40 * bare and status.index.files == count and not failed.failed,
        ),
        Figure(
            "second start until drift is known, the server started too",
            f"{again:.2f} s = {again / walked:.1f} ×",
            f"os.walk with stat {walked * 1000:.0f} ms",
            "≤ 8 ×",
            again <= 8 * walked,
        ),
    )


async def test_saved_file_is_found(engine: Engine, indexed: Installation) -> None:
    await engine.start()
    folder = indexed.notes / "saved"
    folder.mkdir(exist_ok=True)
    await embedding_runs(engine)
    waits = []
    for number in range(SAVES):
        word = f"zyqx{number}saved"
        await asyncio.sleep(0.2)  # saves come apart, as a person's do
        start = time.perf_counter()
        (folder / f"note-{number % 7}.md").write_text(f"# Saved\n\nThe word is {word}.\n")
        while not (await engine.notes.search(word, k=1, mode=Mode.KEYWORD)).citations:
            assert time.perf_counter() - start < 30, f"{word} is not found"
            await asyncio.sleep(0.005)
        waits.append(time.perf_counter() - start)
    status = await engine.notes.status()
    assert status.embedding is not None
    assert status.embedding.pending > 0, "the backlog ran out before the end"
    p95 = percentile(waits, 0.95)
    show(
        Figure(
            "file saved → found by keyword, while the embedding backlog runs",
            f"p50 {median(waits) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, max {max(waits) * 1000:.0f} ms",
            f"{SAVES} saves; {status.embedding.rate:.0f} passages/s embedded meanwhile",
            "p95 ≤ 500 ms",
            p95 <= 0.5,
        )
    )


async def embedding_runs(engine: Engine) -> None:
    """Wait until the backlog is being worked on."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        status = await engine.notes.status()
        if status.embedding is not None and status.embedding.embedded > 0:
            return
        await asyncio.sleep(0.2)
    raise AssertionError("no passage was embedded within two minutes")
