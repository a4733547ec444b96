"""Copying that works over SSH and in tmux, and that says by which route the text went.

Inside tmux the text is handed to tmux itself, which also passes it on to the outer terminal; on a
desktop a local tool takes it; everywhere else the terminal is asked by OSC 52. An escape sequence
is never wrapped for tmux: passthrough is off by default there, and then nothing would be copied.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio import subprocess
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from engine.cleanup import to_its_end

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TOOL_SECONDS = 3.0
"""A tool that has not taken the text by then hangs on a dead display or server."""

OSC52_BYTES = 74_994
"""More than this, and many terminals drop the whole sequence (it is the limit that tmux documents)."""


class Terminal(Protocol):
    """What OSC 52 needs: `App.copy_to_clipboard` writes the sequence through the driver."""

    def copy_to_clipboard(self, text: str) -> None:
        """Ask the terminal to take the text."""


class Route(StrEnum):
    """The way a text went."""

    TMUX = "tmux"
    TOOL = "tool"
    OSC52 = "OSC 52"


@dataclass(frozen=True, slots=True)
class Copied:
    """Which route took the text, and the sentence that tells the user so.

    `certain` is False when nothing confirmed the copy: OSC 52 has no answer.
    """

    route: Route
    sentence: str
    certain: bool


async def copy(terminal: Terminal, text: str, environ: Mapping[str, str] | None = None) -> Copied:
    """Copy `text` by the best route there is, falling back to OSC 52; never raises for a failed tool."""
    environ = os.environ if environ is None else environ
    text = text.encode("utf-8", "replace").decode("utf-8")
    troubles = []
    for route, argv in _tools(environ):
        trouble = await _feed(argv, text)
        if trouble is None:
            return Copied(route, _told(route, argv[0]), certain=True)
        troubles.append(f"{argv[0]} failed ({trouble}). ")
    terminal.copy_to_clipboard(text)
    return Copied(Route.OSC52, "".join(troubles) + _told(Route.OSC52) + _size_warning(text), certain=False)


def _tools(environ: Mapping[str, str]) -> list[tuple[Route, Sequence[str]]]:
    """The commands worth trying here, best first."""
    if environ.get("TMUX"):
        return _found(environ, [(Route.TMUX, ("tmux", "load-buffer", "-w", "-"))])
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return []  # a display forwarded by SSH is not the clipboard in front of the user
    tools: list[tuple[Route, Sequence[str]]] = []
    if sys.platform == "darwin":
        tools.append((Route.TOOL, ("pbcopy",)))
    if environ.get("WAYLAND_DISPLAY"):
        tools.append((Route.TOOL, ("wl-copy", "--type", "text/plain")))
    if environ.get("DISPLAY"):
        tools.append((Route.TOOL, ("xclip", "-selection", "clipboard")))
        tools.append((Route.TOOL, ("xsel", "--clipboard", "--input")))
    return _found(environ, tools)


def _found(
    environ: Mapping[str, str], tools: list[tuple[Route, Sequence[str]]]
) -> list[tuple[Route, Sequence[str]]]:
    path = environ.get("PATH")
    return [(route, argv) for route, argv in tools if shutil.which(argv[0], path=path)]


async def _feed(argv: Sequence[str], text: str) -> str | None:
    """Give `text` to a command's input; None when it took it, else why not.

    Its output goes nowhere: xclip and wl-copy stay in the background and would hold a pipe open.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        return error.strerror or str(error)
    try:
        async with asyncio.timeout(TOOL_SECONDS):
            await process.communicate(text.encode("utf-8"))
    except TimeoutError:
        return f"no answer in {TOOL_SECONDS:g} s"
    finally:
        if process.returncode is None:  # late, or nobody waits any more
            process.kill()
            await to_its_end(process.wait())
    return None if process.returncode == 0 else f"status {process.returncode}"


def _told(route: Route, tool: str = "") -> str:
    if route is Route.TMUX:
        return "copied by tmux: prefix ] pastes, your terminal too if it allows OSC 52"
    if route is Route.TOOL:
        return f"copied by {tool}"
    return "copied by OSC 52: your terminal must allow it"


def _size_warning(text: str) -> str:
    size = len(text.encode("utf-8"))
    if size <= OSC52_BYTES:
        return ""
    return f" (these {size // 1000} KB are more than many terminals take)"
