"""What the engine did, for the Log pane and for a file: bounded, and the same lines in both."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import sys
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

KEPT = 2_000
"""Records held for the screen."""

FILE_BYTES = 2_000_000
FILE_COUNT = 3

TAIL = 256 * 1024
"""Bytes of the file that are read for what happened before this process: some thousand lines."""

LOGGER = "noctuary"
LOG_FILE = "noctuary.log"
"""The file's name in the state folder."""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line: when (UTC), how grave, from which part, what; of a fault also where it came from, and of
    some lines what they say in figures.
    """

    at: datetime
    level: str
    source: str
    text: str
    trace: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_object(self) -> dict[str, Any]:
        """The line for JSON, the same in the file and on standard output."""
        found = {"at": self.at, "level": self.level, "source": self.source, "text": self.text}
        return found | ({"trace": self.trace} if self.trace else {}) | dict(self.fields)


class ActivityLog(logging.Handler):
    """Gathers the records of the `noctuary` loggers."""

    def __init__(self) -> None:
        super().__init__()
        self._records: deque[LogRecord] = deque(maxlen=KEPT)
        self._listeners: list[Callable[[LogRecord], None]] = []
        self._file: _SharedFile | None = None
        self._told: set[str] = set()
        self._earlier: list[LogRecord] = []

    def open(self, folder: Path, level: str) -> None:
        """Start gathering, and writing `noctuary.log` (one JSON object a line) into `folder`."""
        logger = logging.getLogger(LOGGER)
        logger.setLevel(level.upper())
        logger.propagate = False
        logger.addHandler(self)
        self._earlier = stored(folder / LOG_FILE)
        self._file = _SharedFile(folder / LOG_FILE, self._tell_once)
        self._file.setFormatter(_JsonLine())
        logger.addHandler(self._file)

    def shut(self) -> None:
        """Stop gathering. What was gathered stays readable."""
        logger = logging.getLogger(LOGGER)
        logger.propagate = True
        logger.removeHandler(self)
        if self._file is not None:
            logger.removeHandler(self._file)
            with contextlib.suppress(OSError):  # what a full disk did not take
                self._file.close()
            self._file = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record (called by logging, from any thread)."""
        line = LogRecord(
            datetime.fromtimestamp(record.created, UTC),
            record.levelname.lower(),
            record.name.removeprefix(LOGGER + "."),
            record.getMessage(),
            logging.Formatter().formatException(record.exc_info) if record.exc_info else "",
        )
        self._records.append(line)
        for listener in tuple(self._listeners):
            try:
                listener(line)
            # Whoever logs must not fall over whoever listens.
            except Exception as error:  # noqa: BLE001
                self._tell_once(f"A listener of the log fell: {error!r}.")

    def _tell_once(self, sentence: str) -> None:
        """A fault of the log itself: for the screen alone, and never again, since each line would meet it."""
        if sentence not in self._told:
            self._told.add(sentence)
            self._records.append(LogRecord(datetime.now(UTC), "error", "log", sentence))

    def records(self) -> list[LogRecord]:
        """What was gathered, newest last."""
        return list(self._records)

    def history(self) -> list[LogRecord]:
        """The same after the lines that stood in the file before, whichever process wrote them."""
        return [*self._earlier, *self._records]

    def listen(self, callback: Callable[[LogRecord], None]) -> Callable[[], None]:
        """Call `callback` with every new record, on the thread that made it. Returns how to stop."""
        self._listeners.append(callback)

        def unlisten() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(callback)

        return unlisten


def stored(file: Path) -> list[LogRecord]:
    """The last lines of a log file, `TAIL` bytes at most; one that was torn by a crash is left out."""
    if not file.is_file():  # a device or a pipe has no end, or none that comes
        return []
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - TAIL))
            lines = stream.read(TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            told = json.loads(line)
            at = datetime.fromisoformat(told["at"])
            found.append(LogRecord(at, str(told["level"]), str(told["source"]), str(told["text"])))
    return found


class _SharedFile(WatchedFileHandler):
    """A file that any number of processes append to. Whoever finds it full renames it, under a lock; the
    others notice at their next line. What goes wrong is told to `tell`, never to standard error, which is
    the screen.
    """

    def __init__(self, path: Path, tell: Callable[[str], None]) -> None:
        super().__init__(path, encoding="utf-8", delay=True)
        self._path = path
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line (called by logging, from any thread, under the handler's lock)."""
        try:
            if self._full():
                self._rotate()
            super().emit(record)
        except OSError:  # the file cannot even be opened
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        """Say why a line was not written."""
        del record
        error = sys.exc_info()[1]
        reason = getattr(error, "strerror", None) or repr(error)
        self._tell(f"{self._path} cannot be written: {reason}.")

    def _full(self) -> bool:
        try:
            return self._path.stat().st_size >= FILE_BYTES
        except FileNotFoundError:
            return False

    def _rotate(self) -> None:
        with self._numbered("lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._full():  # else another process was quicker
                for number in range(FILE_COUNT - 1, 0, -1):
                    with contextlib.suppress(FileNotFoundError):
                        self._numbered(number).replace(self._numbered(number + 1))
                self._path.replace(self._numbered(1))

    def _numbered(self, suffix: int | str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")


class _JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "source": record.name.removeprefix(LOGGER + "."),
            "text": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)
