"""Further worker processes of one `noctuary worker`: chunking is Python, and one process has one core for it.

Each is a `noctuary worker` of its own that makes no vectors: one model in memory is enough, and it takes
all cores by itself. They end with the process that started them, whatever ends that.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.cleanup import to_its_end
from engine.errors import ServiceError
from engine.systemd import program

if TYPE_CHECKING:
    from engine import Engine

PATIENCE = 15.0
"""Seconds a process has to give back what it holds before it is killed: its leases then lapse."""


def hire(engine: Engine, number: int) -> None:
    """Keep `number` further worker processes running as long as the engine does."""
    for each in range(1, number + 1):
        engine.keep(f"worker process {each}", _work)


async def _work() -> None:
    process = await asyncio.create_subprocess_exec(
        *program(),
        "worker",
        "--no-embed",
        "--attached",
        stdin=asyncio.subprocess.PIPE,  # its end tells the process that we are gone
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # an interrupt typed here is ours to hand on, once
    )
    try:
        status = await process.wait()
    finally:
        await to_its_end(_end(process))
    raise ServiceError(f"It ended by itself with status {status}.", remedy="The log may tell why.")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(PATIENCE):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def until_left() -> None:
    """Wait until the process that started this one is gone: its end of our standard input closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        await reader.read()
    finally:
        transport.close()
