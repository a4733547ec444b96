"""The server itself: the protocol by the official SDK, one engine behind it, and an end in order.

`initialize` and `tools/list` are answered before the database is open; the first call waits for it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from engine.doors import exits
from engine.doors.mcp import wire
from engine.doors.mcp.calls import Calls
from engine.doors.mcp.opened import Opened
from engine.doors.mcp.tools import INSTRUCTIONS
from engine.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.settings import Settings

APPLICATION = "noctuary mcp"

_log = logging.getLogger("noctuary.mcp")


async def serve(settings: Settings, ends: tuple[int, int], *, live: bool) -> int:
    """Serve until the client goes. `ends` are the descriptors of its two streams; `live` keeps the index
    true to the disk meanwhile.
    """
    opened = Opened(settings, application=APPLICATION, live=live)
    opened.begin()
    try:
        with _sdk_log():
            await _until_gone(opened, ends)
    finally:
        await opened.close()
    return exits.DONE


async def _until_gone(opened: Opened, ends: tuple[int, int]) -> None:
    calls = Calls(opened)
    out = wire.Out(ends[1])
    lines = wire.Lines(ends[0], lambda: calls.finish(heard=out.heard))
    serving = asyncio.create_task(_speak(calls, lines, out), name="noctuary-mcp")
    out.on_gone = serving.cancel
    try:
        await serving
    except asyncio.CancelledError:
        this = asyncio.current_task()
        if this is not None and this.cancelling():
            raise
        # Else nobody reads what we say: the client is gone, and that is no error of ours.


async def _speak(calls: Calls, lines: wire.Lines, out: wire.Out) -> None:
    server: Server[Any] = Server(
        "noctuary",
        version=VERSION,
        title="Noctuary",
        instructions=INSTRUCTIONS,
        on_list_tools=calls.list_tools,
        on_call_tool=calls.call,
    )
    # The SDK asks of both only what ours have: lines, and `write` and `flush`.
    async with stdio_server(cast("Any", lines), cast("Any", out)) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _ToOurLog(logging.Handler):
    """Takes what the SDK complains of to our log, in one line: nobody listens to it else."""

    def emit(self, record: logging.LogRecord) -> None:
        _log.log(record.levelno, "%s", record.getMessage())


@contextmanager
def _sdk_log() -> Iterator[None]:
    logger, handler = logging.getLogger("mcp"), _ToOurLog(logging.WARNING)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(handler)
