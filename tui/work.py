"""The application's workers: each asks the engine one thing and posts one message; none touches a widget."""

from __future__ import annotations

import asyncio
import importlib
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import DatabaseUnavailable, NoctuaryError
from tui.messages import EngineFailed, EngineReady, Opening, Started, StatusRead

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.message import Message

    from engine import Engine
    from engine.settings import Settings

    Post = Callable[[Message], object]


ASK_AGAIN_SECONDS = 2.0
"""Between two attempts to see the folders while the database is away."""

LEAVE_SECONDS = 1.0
"""For what a pane writes down at the end: a database that is away must not hold it up."""


async def open_engine(settings: Settings, post: Post) -> None:
    """Import and open the engine. The import takes long enough to be seen, so it has a thread."""
    module = await asyncio.to_thread(importlib.import_module, "engine")
    try:
        engine: Engine = await module.Engine.open(
            settings, application="noctuary", on_state=lambda text: post(Opening(text))
        )
    except NoctuaryError as error:
        post(EngineFailed(error))
    else:
        post(EngineReady(engine))


async def start(engine: Engine, folder: Path | None, post: Post) -> None:
    """Add the folder of the command line, start the services, and see whether there is any folder.

    A folder that cannot be added keeps nothing else from starting.
    """
    errors = await engine.add_folders(() if folder is None else (folder,))
    errors += await engine.start()
    while True:
        try:
            folders = await engine.notes.folders()
        except DatabaseUnavailable as error:
            post(StatusRead(None, error))
            await asyncio.sleep(ASK_AGAIN_SECONDS)
        else:
            post(Started(len(folders), errors))
            return


async def read_status(engine: Engine, post: Post, *, exact: bool) -> None:
    """Read the status of the notes; without `exact` its counts may be a moment old."""
    try:
        status = await engine.notes.status(exact=exact)
    except NoctuaryError as error:
        post(StatusRead(None, error))
    else:
        post(StatusRead(status))


async def take_leave(leaving: Awaitable[None]) -> None:
    """Let the pane that is up write down what it has to; nobody waits long for it."""
    with suppress(NoctuaryError, TimeoutError):
        async with asyncio.timeout(LEAVE_SECONDS):  # wait_for of Python 3.11 can lose a cancellation
            await leaving
