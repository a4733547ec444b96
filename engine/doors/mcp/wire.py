"""The protocol's two ends: lines in, lines out, and nothing else ever on standard output.

Both standard streams are taken away first: whatever else reads or writes them from then on, be it Python or a
library in C, meets the null device. The protocol goes by descriptors of its own, each served by a thread: it
can also read a file or a terminal, which a loop cannot, and one that hangs holds up no end of the process.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import select
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Self

from engine.errors import ServeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes of one message; a longer one is dropped, so that nobody can fill the memory."""

LINES_HELD = 64
"""Messages that were read and that nobody took yet; the sender of more has to wait."""

PIECE = 64 * 1024
"""Bytes read at once: what a pipe holds."""

FIRST_FREE = 3
"""The first descriptor that is none of the standard ones."""

_log = logging.getLogger("noctuary.mcp")


def take_standard_streams() -> tuple[int, int]:
    """Take standard input and output from the rest of the process, for good. Returns descriptors of both.

    What waits in the buffer of `sys.stdout` is lost with all that is printed later.

    Raises:
        ServeError: one of them is closed.
    """
    if sys.stdin is None or sys.stdout is None:
        raise ServeError(
            "There is no standard input or output to speak over.",
            remedy="`noctuary mcp` is started by a program that speaks MCP.",
        )
    ends = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE) for each in (0, 1)]
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1):
        os.dup2(nothing, each)
    os.close(nothing)
    return ends[0], ends[1]


class Lines:
    """The lines that come in at a descriptor, decoded. Ends where they end, when `before_end` is done."""

    def __init__(self, descriptor: int, before_end: Callable[[], Awaitable[None]]) -> None:
        self._descriptor = descriptor
        self._before_end = before_end
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(LINES_HELD)
        threading.Thread(target=self._read, name="noctuary-mcp-in", daemon=True).start()

    def __aiter__(self) -> Self:
        """See `__anext__`."""
        return self

    async def __anext__(self) -> str:
        """The next line."""
        line = await self._lines.get()
        self._room.release()
        if line is None:
            await self._before_end()
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody listens any more
            cutter = Cutter(self._hand)
            while piece := self._piece():
                cutter.add(piece)
            cutter.end()
            self._hand(None)

    def _piece(self) -> bytes:
        try:
            return os.read(self._descriptor, PIECE)
        except OSError:  # a terminal that is gone
            return b""

    def _hand(self, line: bytes | None) -> None:
        self._room.acquire()
        text = None if line is None else line.decode("utf-8", "replace")
        self._loop.call_soon_threadsafe(self._lines.put_nowait, text)


class Cutter:
    """Cuts what comes in pieces into lines; one that is too long is left out."""

    def __init__(self, hand: Callable[[bytes], None]) -> None:
        self._hand = hand
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> None:
        """Take in a piece, and hand on the lines that it ends."""
        first, *others = piece.split(b"\n")
        self._grow(first)
        for part in others:
            self.end()
            self._grow(part)

    def end(self) -> None:
        """The line is at its end, with or without its sign."""
        if self._size > LONGEST_LINE:
            _log.error("A message of %d bytes was dropped: it is too long.", self._size)
        elif line := b"".join(self._parts).strip():
            self._hand(line)
        self._parts, self._size = [], 0

    def _grow(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > LONGEST_LINE:
            self._parts = []
        else:
            self._parts.append(part)


class Out:
    """Writes text to a descriptor, each whole and in order."""

    def __init__(self, descriptor: int) -> None:
        self.on_gone: Callable[[], object] = lambda: None
        """Called when nobody reads any more."""
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._texts: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._serve, name="noctuary-mcp-out", daemon=True).start()

    async def write(self, text: str) -> None:
        """Write a text and wait until it is. Whoever is cancelled meanwhile leaves no half of it."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._texts.put((text.encode("utf-8", "backslashreplace"), done))
        await done

    def heard(self) -> bool:
        """Whether somebody still reads at the other end, as far as the system knows."""
        look = select.poll()
        look.register(self._descriptor, 0)  # an error is told unasked
        return not look.poll(0)

    async def flush(self) -> None:
        """Nothing is held back."""

    def _serve(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            while True:
                data, done = self._texts.get()
                try:
                    self._all(data)
                except OSError:
                    self._loop.call_soon_threadsafe(self.on_gone)
                self._loop.call_soon_threadsafe(_settle, done)

    def _all(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def _settle(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
