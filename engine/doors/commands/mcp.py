"""`noctuary mcp`: notes and memory as tools for programs that speak the Model Context Protocol."""

from __future__ import annotations

import gc
import importlib
import sys

import click

from engine.doors import output, session
from engine.settings import Settings


@click.command()
@click.option(
    "--watch/--no-watch",
    default=True,
    show_default=True,
    help="Keep the index true to the disk meanwhile, or only search what others index.",
)
def mcp(*, watch: bool) -> int:
    """Serve notes and memory to an assistant, over standard input and output.

    It is started by a program that speaks MCP, such as Claude Code:
    claude mcp add noctuary -- noctuary mcp
    """
    from engine.doors.mcp import wire

    by_hand = sys.stdin is not None and sys.stdin.isatty()
    ends = wire.take_standard_streams()
    if by_hand:
        output.note("This speaks MCP, to a program. The README tells how to add it to one. Ctrl+C ends it.")
    settings = Settings.load()
    _import_library()
    from engine.doors.mcp.server import serve

    return session.endable(lambda: serve(settings, ends, live=watch))


def _import_library() -> None:
    """Import the SDK. Its many objects all stay; looking for garbage among them takes a fifth of the time."""
    gc.disable()
    try:
        importlib.import_module("engine.doors.mcp.server")
    finally:
        gc.enable()
    gc.freeze()
