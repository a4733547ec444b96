"""The kernel's events below a folder, heard by a process of its own.

watchfiles places a watch on every folder while it holds the interpreter's lock, 27 µs each on a warm
disk: with a `node_modules` below the root the screen would stand still for seconds, in whichever thread.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cleanup import to_its_end

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_LISTENING = Path(__file__).with_name("listening.py")
_DEBOUNCE_MS, _STEP_MS = 200, 50
_LONGEST_LINE = 64 * 1024 * 1024


class EventsFailed(Exception):
    """There are no events to be had (any more): no more watches, or a fault of the listener."""


async def changes(root: Path, *, beat: float) -> AsyncGenerator[list[tuple[str, str]], None]:
    """Batches of (kind, path), where kind is `added`, `modified` or `deleted`.

    After `beat` seconds without any an empty one comes: the listener lives. Close it when done.

    Raises:
        EventsFailed: the listener says why, or died.
    """
    process = await _listener(root, beat)
    try:
        while process.stdout and (line := await process.stdout.readline()):
            told = json.loads(line)
            if isinstance(told, str):
                raise EventsFailed(told)
            yield [(kind, path) for kind, path in told]
        raise EventsFailed("the process that listens for them ended")
    finally:
        await to_its_end(_end(process))


async def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


async def _listener(root: Path, beat: float) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the modules beside the script are not to be taken for those of a library
            str(_LISTENING),
            str(root),
            str(_DEBOUNCE_MS),
            str(_STEP_MS),
            str(int(beat * 1000)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # the terminal's Ctrl+C is for its parent
            limit=_LONGEST_LINE,
        )
    except OSError as error:  # too many processes or open files, no memory
        raise EventsFailed(
            f"the process that listens for them cannot be started: {error.strerror}"
        ) from error
