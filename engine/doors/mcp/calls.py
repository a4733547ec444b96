"""Calls of tools: each on an engine that is open, apart from the others, bounded, and never a traceback."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from engine.doors.mcp import arguments
from engine.doors.mcp.tool import Call
from engine.doors.mcp.tools import TOOLS
from engine.errors import BrainError, FolderError, LessonError, NoctuaryError, QueryError, TurnError
from engine.text.safe import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcp.server.context import ServerRequestContext

    from engine.doors.mcp.opened import Opened

MOST_AT_ONCE = 8
"""Calls that are worked on at a time; further ones wait."""

GRACE = 5.0
"""Seconds that calls have to end when the input is at its end and somebody still reads the output."""

SETTLING = 0.05
"""Seconds in which what came last becomes a call."""

FAULT = "Noctuary met a fault of its own; `noctuary log` tells of it."

CALLERS = (QueryError, FolderError, BrainError, TurnError, LessonError)
"""Errors of who calls: the log need not tell of them."""

LONGEST_CLIENT = 80
"""Letters of a client's name."""

_log = logging.getLogger("noctuary.mcp")


class Calls:
    """The calls of one client."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._room = asyncio.Semaphore(MOST_AT_ONCE)
        self._running: set[asyncio.Task[CallToolResult]] = set()

    async def list_tools(
        self, context: ServerRequestContext[Any], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """What there is to be called. All of it is the same for everybody and needs no engine."""
        del context, params
        return ListToolsResult(tools=[_described(name) for name in TOOLS])

    async def call(self, context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        """Do one call.

        Raises:
            MCPError: there is no such tool.
        """
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"There is no such tool. There are: {', '.join(TOOLS)}.")
        work = self._worked(context, params.name, params.arguments or {})
        task = asyncio.create_task(work, name="noctuary-mcp-call")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await _apart(task)

    async def finish(self, *, heard: Callable[[], bool]) -> None:
        """No more comes: let what runs come to its end while it is `heard`, for a while."""
        if not heard():
            return
        await asyncio.sleep(SETTLING)
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE)

    async def _worked(
        self, context: ServerRequestContext[Any], name: str, given: dict[str, Any]
    ) -> CallToolResult:
        tool = TOOLS[name]
        try:
            options = arguments.read(tool.parameters, given)
            async with self._room:
                engine = await self._opened.engine()
                text, value = await tool.work(Call(engine, options, _reporting(context), _client(context)))
        except CALLERS as error:
            return _failed(str(error))
        except NoctuaryError as error:
            _log.warning("%s failed: %s", name, error)
            return _failed(str(error))
        # A fault of ours is told as one, and not how it came about: that is in the log.
        except Exception as error:  # noqa: BLE001
            _log.error("%s fell", name, exc_info=error)
            return _failed(FAULT)
        return CallToolResult(content=[TextContent(text=text)], structured_content=value)


async def _apart(task: asyncio.Task[CallToolResult]) -> CallToolResult:
    """The result of a task. When the caller is cancelled so is the task, once, and its cleaning up is waited
    for: the SDK itself cancels again and again until nothing runs any more, which breaks what cleans up.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})
        raise


def _reporting(context: ServerRequestContext[Any]) -> Callable[[float, str], Coroutine[Any, Any, None]]:
    async def report(progress: float, sentence: str) -> None:
        await context.session.report_progress(progress, message=sentence)

    return report


def _client(context: ServerRequestContext[Any]) -> str:
    """What the client calls itself; empty where it does not tell."""
    told = context.session.client_params
    name = told.client_info.name[:LONGEST_CLIENT] if told else ""
    return visible(name, keep_newlines=False, keep_tabs=False).strip()


def _failed(sentence: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=visible(sentence))], is_error=True)


def _described(name: str) -> Tool:
    tool = TOOLS[name]
    return Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=arguments.schema(tool.parameters),
        output_schema=dict(tool.output_schema),
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )
