"""One run of the console: until it is quit, or a signal ends it, which leaves the database in order too."""

from __future__ import annotations

import asyncio
import sys
import termios
from typing import TYPE_CHECKING

from engine.ending import Ending, end_by
from tui.app import NoctuaryApp
from tui.strays import kept_off_the_screen

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings

RESTORE_SECONDS = 3.0
"""What a terminal that is still there is given to be put back as it was."""


async def run(settings: Settings, folder: Path | None = None) -> int:
    """Run the console; the exit status.

    Raises:
        SettingsError: the keys of the settings cannot be used.
        Exception: a fault of ours, once the terminal is as it was.
    """
    with kept_off_the_screen():
        return await _run(settings, folder)


async def _run(settings: Settings, folder: Path | None) -> int:
    app = NoctuaryApp(settings, folder)
    asked = asyncio.Event()
    ending = Ending(asked.set)
    tasks = asyncio.create_task(app.run_async()), asyncio.create_task(asked.wait())
    running, told = tasks
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if ending.by is not None:
            await _leave(app, running)
        else:
            await running
    finally:
        told.cancel()
        await app.close_engine()
    if app.fault is not None:
        raise app.fault
    return end_by(ending.by) if ending.by is not None else app.return_code or 0


async def _leave(app: NoctuaryApp, running: asyncio.Task[None]) -> None:
    """First the engine, whatever becomes of the terminal; then the screen, if anybody can see it."""
    with app.batch_update():
        await app.close_engine()
    if _terminal_is_there():
        app.exit()
        await asyncio.wait({running}, timeout=RESTORE_SECONDS)


def _terminal_is_there() -> bool:
    try:
        termios.tcgetattr(sys.stdin.fileno())
    except termios.error:
        return False
    return True
