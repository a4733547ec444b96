"""The log on standard output, for what runs without anybody watching: one record a line, as JSON.

Lines are written by a thread of their own: a reader that takes its time must not hold up the work, and a line
of one thread must not stand within another's. What does not fit into the queue is left out, and said so.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from engine.activity import LogRecord
from engine.doors import output

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from engine import Engine

HELD = 10_000
"""Lines that wait for a slow reader."""

LAST_SECONDS = 5.0
"""For the last lines at the end; a reader that has stopped reading is not waited for."""


class Lines:
    """Takes records from any thread and writes them one after the other."""

    def __init__(self, write: Callable[[LogRecord], None], on_broken: Callable[[], object]) -> None:
        self.broken = False
        """Whether the reader went away."""
        self._write = write
        self._on_broken = on_broken
        self._waiting: queue.Queue[LogRecord | None] = queue.Queue(HELD)
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="noctuary-log", daemon=True)
        self._thread.start()

    def take(self, record: LogRecord) -> None:
        """Write a record soon; never waits."""
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._lost += 1

    def say(self, text: str, source: str, **fields: Any) -> None:  # noqa: ANN401 - whatever JSON takes
        """Write a line that belongs to this output alone and not into the log."""
        self.take(LogRecord(datetime.now(UTC), "info", source, text, fields=fields))

    def close(self) -> None:
        """Write what is held, as far as the reader takes it."""
        try:
            self._waiting.put(None, timeout=LAST_SECONDS)
        except queue.Full:
            return
        self._thread.join(LAST_SECONDS)

    def _run(self) -> None:
        while not self.broken and (record := self._waiting.get()) is not None:
            try:
                self._write(record)
                if lost := self._lost:
                    self._lost = 0
                    text = f"{lost:,} lines were left out: the reader was too slow."
                    self._write(LogRecord(datetime.now(UTC), "warning", "log", text))
            except BrokenPipeError:
                self.broken = True
                self._on_broken()


@asynccontextmanager
async def to_stdout(engine: Engine, *, as_text: bool = False) -> AsyncIterator[Lines]:
    """Write every record of the engine's log to standard output, those gathered so far first.

    Each is a line of JSON, or `as_text` one for people. When the reader goes away the work is cancelled.

    Raises:
        BrokenPipeError: the reader went away.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def leave() -> None:
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    lines = Lines(_as_text if as_text else _as_json, leave)
    for record in engine.log.records():
        lines.take(record)
    unlisten = engine.log.listen(lines.take)
    try:
        yield lines
    except asyncio.CancelledError:
        if lines.broken:
            raise BrokenPipeError from None
        raise
    finally:
        unlisten()
        lines.close()


def _as_json(record: LogRecord) -> None:
    output.dump_line(record.as_object())


def _as_text(record: LogRecord) -> None:
    output.say(f"{record.at.astimezone():%H:%M:%S} {record.level:<7} {record.source}: {record.text}")
