"""The processes of multilingual-e5-small as seen from outside: asked, replaced when they die, and ended.

A process does one thing at a time, so the one that dies names what it died of.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cleanup import to_its_end
from engine.errors import ModelError
from engine.models.embedding.multilingual_child import ASKED, FAILURE, TOLD

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Sequence

_SCRIPT = Path(__file__).with_name("multilingual_child.py")

START_TIMEOUT = 60.0
"""Seconds until the model must be loaded; it takes 0.3 on an idle machine."""

CALL_TIMEOUT = 180.0
"""Seconds after which a process is taken for hung. The longest call computes for 5; a nice process on a
busy machine may get a tenth of it."""

END_TIMEOUT = 2.0
"""Seconds a process has to end when told to, before it is killed."""


class ChildDied(Exception):
    """The process ended, or did not answer in time, while something was asked of it."""


class Child:
    """A running process with the model loaded. One request at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *, threads: int, niceness: int) -> Child:
        """A new process, once its model is loaded.

        Raises:
            ModelError: It did not start.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the modules beside the script are not to be taken for those of a library
            str(_SCRIPT),
            str(niceness),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # without a terminal that a crash could write to
            env=os.environ | _environment(threads),
        )
        child = cls(process)
        loaded = False
        try:
            await child._answer(START_TIMEOUT)
            loaded = True
        except ChildDied as error:
            raise ModelError(f"The process for the embedding model did not start: it {error}.") from error
        finally:
            if not loaded:  # also when the caller was cancelled
                await to_its_end(child.end())
        return child

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    async def ask(self, what: str, texts: Sequence[str]) -> bytes:
        """What the process makes of the texts (see `multilingual_child`).

        Raises:
            ChildDied: It ended first; it is of no use any more.
        """
        body = json.dumps([what, list(texts)]).encode()
        if self._process.stdin:
            self._process.stdin.write(ASKED.pack(len(body)) + body)
        return await self._answer(CALL_TIMEOUT)

    async def _answer(self, seconds: float) -> bytes:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ChildDied("has no pipes")
        try:
            async with asyncio.timeout(seconds):
                await stdin.drain()
                kind, length = TOLD.unpack(await stdout.readexactly(TOLD.size))
                payload = await stdout.readexactly(length)
        except TimeoutError as error:
            raise ChildDied(f"did not answer within {seconds:.0f} seconds") from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            await self._ended()
            raise ChildDied(f"ended: {_cause(self._process.returncode)}") from error
        if kind == FAILURE:
            raise ChildDied(f"failed: {payload.decode('utf-8', 'replace')}")
        return payload

    async def end(self) -> None:
        """End the process, by force where it does not by itself. Ending twice is harmless."""
        for stop in (self._process.terminate, self._process.kill):
            if self._process.returncode is None:  # a signal to a dead one takes its exit code from asyncio
                with suppress(ProcessLookupError):
                    stop()
            if await self._ended():
                return

    async def _ended(self) -> bool:
        """Wait a moment for the process to be gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(END_TIMEOUT):
                await self._process.wait()
        return self._process.returncode is not None


class Seat:
    """Where one process serves after the other: a dead one is replaced when next needed."""

    def __init__(self, *, threads: int, niceness: int) -> None:
        self._threads = threads
        self._niceness = niceness
        self.child: Child | None = None

    async def answer(self, what: str, texts: Sequence[str]) -> bytes:
        """What a process makes of the texts; where one dies of them, of each text alone.

        Raises:
            ModelError: A process died of a single text twice, or none starts.
        """
        try:
            return await self._try(what, texts)
        except ChildDied:
            return b"".join([await self._alone(what, text) for text in texts])

    async def _alone(self, what: str, text: str) -> bytes:
        try:
            return await self._try(what, [text])
        except ChildDied as error:
            what = (
                f"a text of {len(text):,} characters"  # which is nobody's but the note's: errors are logged
            )
            raise ModelError(f"The embedding model's process {error}, on {what}.") from error

    async def _try(self, what: str, texts: Sequence[str]) -> bytes:
        if self.child is None:
            self.child = await Child.start(threads=self._threads, niceness=self._niceness)
        try:
            return await self.child.ask(what, texts)
        except ChildDied:
            await self.end()
            raise

    async def end(self) -> None:
        """End the process."""
        child, self.child = self.child, None
        if child is not None:
            await to_its_end(child.end())


class Lane:
    """Requests to one seat, first come, first served. Made without a process: the first request starts it."""

    def __init__(self, *, threads: int, niceness: int) -> None:
        self.seat = Seat(threads=threads, niceness=niceness)
        self._turn = asyncio.Lock()
        self._running: asyncio.Task[bytes] | None = None
        self._closed = False

    async def ask(self, what: str, texts: Sequence[str]) -> bytes:
        """See `Seat.answer`. A cancelled caller leaves at once; what the process has begun is read to its
        end before the next request, so that no answer is taken for another's.

        Raises:
            ModelError: As `Seat.answer`, or the lane is closed.
        """
        await self._turn.acquire()
        if self._closed:
            self._turn.release()
            raise _was_closed()
        self._running = asyncio.create_task(self.seat.answer(what, texts))
        self._running.add_done_callback(self._end_turn)
        try:
            return await asyncio.shield(self._running)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and not (task and task.cancelling()):
                raise _was_closed() from None  # nobody cancelled the caller: the process is gone
            raise

    def _end_turn(self, ended: asyncio.Task[bytes]) -> None:
        self._turn.release()
        if not ended.cancelled():
            ended.exception()  # told to the caller, unless that one has left

    async def close(self) -> None:
        """End the process and what is asked of it. Closing twice is harmless."""
        self._closed = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self.seat.end()


def _environment(threads: int) -> dict[str, str]:
    """What OpenMP must find when it loads: waiting threads sleep, they do not spin on the user's cores."""
    return {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1"}


def _cause(code: int | None) -> str:
    """How a process ended, by its exit code."""
    if code is not None and code < 0:
        with suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


def _was_closed() -> ModelError:
    return ModelError("The embedding model was closed.", remedy="Open the engine again.")
