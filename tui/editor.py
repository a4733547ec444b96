"""Opening the user's editor at a line while the engine keeps running.

The editor is named by the settings, which split it like a shell would; it is never given to a shell.
The file is always an absolute path, so no name can be taken for an option. The terminal is lent to the
editor and taken back whatever happens to the editor.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import threading
from asyncio import subprocess
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import SuspendNotSupported

from engine.cleanup import to_its_end
from engine.errors import NoctuaryError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from textual.app import App

    from engine.settings import Settings

GRACE_SECONDS = 3.0
"""How long an editor may take to end when the app itself is ending."""

_PLUS = ("+{line}", "{file}")
_COLON = ("{file}:{line}",)
_GOTO = ("--goto", "{file}:{line}")
_LONG = ("--line", "{line}", "{file}")
_SHAPES: Mapping[tuple[str, ...], str] = {
    _PLUS: "vi vim nvim view rvim rview ex gvim mvim vimr neovide nano pico rnano emacs emacsclient micro "
    "kak joe jmacs jstar mg ne vis mcedit gedit xed pluma gnome-text-editor geany bbedit less",
    _COLON: "hx helix subl sublime_text zed zeditor lapce",
    _GOTO: "code code-insiders codium vscodium cursor windsurf positron",
    _LONG: "kate kwrite mate idea pycharm webstorm rustrover goland clion phpstorm",
}
SYNTAX: Mapping[str, tuple[str, ...]] = {
    name: shape for shape, names in _SHAPES.items() for name in names.split()
}
"""How each known editor is told a line. An unknown editor gets the file alone: `+9` may be a file to it."""


class EditorError(NoctuaryError):
    """The editor is not installed, cannot be started, or ended with an error.

    Messages say what is wrong first and name the path last: they are shown on one line.
    """

    title = "Editor"


@dataclass(frozen=True, slots=True)
class Streams:
    """What the editor reads and writes: the terminal itself, whatever the app does with its own streams."""

    stdin: int
    stdout: int
    stderr: int


NOWHERE = Streams(subprocess.DEVNULL, subprocess.DEVNULL, subprocess.DEVNULL)


def command(settings: Settings) -> list[str]:
    """The words of the user's editor, which is installed.

    Raises:
        SettingsError: None is named and there is no fallback.
        EditorError: It is not installed.
    """
    words = settings.editor_command()
    if shutil.which(words[0]) is None:
        raise EditorError(
            f"not installed, or not on the PATH: {words[0]!r} ({settings.source('editor')}).",
            remedy="Set editor in config.toml, or EDITOR.",
        )
    return list(words)


def arguments(words: list[str], file: Path, line: int) -> list[str]:
    """The full command that opens `file` (made absolute) at `line` (1-based)."""
    shape = SYNTAX.get(_program(words[0]), ("{file}",))
    # replace, not format: a brace in a file's name is only a brace.
    filled = (part.replace("{line}", str(max(1, line))) for part in shape)
    return [*words, *(part.replace("{file}", os.path.abspath(file)) for part in filled)]  # noqa: PTH100


def _program(word: str) -> str:
    """The name an editor is known by: `/usr/bin/vim.basic` is vim, `emacs-29` is emacs."""
    name = Path(word).name.lower().removesuffix(".exe")
    if name in SYNTAX:
        return name
    stem = re.match(r"[a-z]+", name)
    return stem.group() if stem else name


def environment(environ: Mapping[str, str], *, no_color: bool) -> dict[str, str]:
    """The editor's environment: Textual takes NO_COLOR out of ours, so it is given back."""
    return {**environ, "NO_COLOR": environ.get("NO_COLOR", "1")} if no_color else dict(environ)


async def edit(app: App[Any], file: Path, line: int, settings: Settings) -> None:
    """Open `file` at `line` and return when the editor ends; the event loop runs on meanwhile.

    Call it in a worker. An editor with a window of its own may return at once.

    Raises:
        SettingsError: No editor is known.
        EditorError: The file is not there, or the editor cannot be started or failed.
    """
    words = command(settings)
    if not await asyncio.to_thread(file.is_file):
        raise EditorError(f"there is no file any more at {str(file)!r}.", remedy="Refresh the search.")
    argv = arguments(words, file, line)
    outcome = _Outcome()
    with lent_terminal(app) as streams:
        await outcome.run(argv, streams, environment(os.environ, no_color=app.no_color))
    outcome.check(words[0])


@dataclass(slots=True)
class _Outcome:
    """What became of the editor, held until the terminal is ours again.

    `App.suspend` does not take the terminal back when an exception passes through it, so nothing
    may be raised before it has ended.
    """

    status: int | None = None
    error: OSError | None = None
    cancelled: asyncio.CancelledError | None = None

    async def run(self, argv: list[str], streams: Streams, environ: Mapping[str, str]) -> None:
        """Run the editor to its end. Never raises."""
        process: subprocess.Process | None = None
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=streams.stdin, stdout=streams.stdout, stderr=streams.stderr, env=environ
            )
            self.status = await process.wait()
        except OSError as error:
            self.error = error
        except asyncio.CancelledError as cancelled:
            self.cancelled = cancelled
            if process is not None:
                with suppress(asyncio.CancelledError):  # told already
                    await to_its_end(_end(process))

    def check(self, name: str) -> None:
        """Raise what happened, if it was not a good end."""
        if self.cancelled is not None:
            raise self.cancelled
        if self.error is not None:
            why = self.error.strerror or str(self.error)
            raise EditorError(f"not started, {why}: {name!r}.", remedy="Set editor in config.toml.")
        if self.status:
            how = f"status {self.status}" if self.status > 0 else f"signal {-self.status}"
            raise EditorError(f"ended with {how}: {name!r}.")


async def _end(process: subprocess.Process) -> None:
    """End an editor that outlives the app, so that two programs never share the terminal."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


@contextmanager
def lent_terminal(app: App[Any]) -> Iterator[Streams]:
    """Give up the terminal and take it back; where there is none to give (tests), lend nothing.

    Repaints are held back meanwhile: the driver's writer is stopped, and a repaint would fill its
    queue and freeze the event loop.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(app.suspend())
        except SuspendNotSupported:
            yield NOWHERE
            return
        stack.enter_context(app.batch_update())
        stack.enter_context(_interrupts_ignored())
        yield _terminal()


def _terminal() -> Streams:
    """The streams the process was started with; output sent elsewhere goes to the terminal instead."""
    streams = (sys.__stdout__, sys.__stderr__)
    outputs = [stream for stream in streams if stream is not None and stream.isatty()]
    if sys.__stdin__ is None or not outputs:
        return NOWHERE
    output = outputs[0].fileno()
    return Streams(sys.__stdin__.fileno(), output, output)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let ctrl+c be the editor's alone: the terminal sends it to every process in the foreground.

    A handler of ours rather than SIG_IGN, which the editor would inherit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _nothing)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


def _nothing(_number: int, _frame: FrameType | None) -> None:
    """Take a signal and do nothing."""
