"""Cleaning up is finished, however often whoever does it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import psutil
import pytest

from engine.cleanup import to_its_end
from engine.notes import events

if TYPE_CHECKING:
    from pathlib import Path


async def test_it_is_done_to_its_end_however_often_its_caller_is_cancelled() -> None:
    gate, begun, done = asyncio.Event(), asyncio.Event(), []

    async def work() -> None:
        begun.set()
        await gate.wait()
        done.append(True)

    task = asyncio.create_task(to_its_end(work()))
    await begun.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]


async def test_an_error_of_the_work_is_told() -> None:
    async def work() -> None:
        raise ValueError("so")

    with pytest.raises(ValueError, match="so"):
        await to_its_end(work())


async def test_a_listener_is_gone_also_when_it_is_stopped_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone, and with all others: the second cancellation came while its end was waited for."""
    waits, wait = asyncio.Event(), asyncio.subprocess.Process.wait

    async def told(process: asyncio.subprocess.Process) -> int:
        waits.set()
        return await wait(process)

    monkeypatch.setattr(asyncio.subprocess.Process, "wait", told)

    async def listen() -> None:
        async for _ in events.changes(tmp_path, beat=0.1):
            heard.set()

    heard = asyncio.Event()
    task = asyncio.create_task(listen())
    await heard.wait()
    (child,) = [each for each in psutil.Process().children() if str(tmp_path) in " ".join(each.cmdline())]
    task.cancel()
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not child.is_running(), "killed and seen gone"
