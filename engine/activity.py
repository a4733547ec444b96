"""What the engine did, for the Log pane and for a file: bounded, and the same lines in both."""

from __future__ import annotations

import contextlib
import json
import logging
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEPT = 2_000
"""Records held for the screen."""

FILE_BYTES = 2_000_000
FILE_COUNT = 3

LOGGER = "noctuary"


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line: when (UTC), how grave, from which part, what."""

    at: datetime
    level: str
    source: str
    text: str


class ActivityLog(logging.Handler):
    """Gathers the records of the `noctuary` loggers."""

    def __init__(self) -> None:
        super().__init__()
        self._records: deque[LogRecord] = deque(maxlen=KEPT)
        self._listeners: list[Callable[[LogRecord], None]] = []
        self._file: RotatingFileHandler | None = None

    def open(self, folder: Path, level: str) -> None:
        """Start gathering, and writing `noctuary.log` (one JSON object a line) into `folder`."""
        logger = logging.getLogger(LOGGER)
        logger.setLevel(level.upper())
        logger.propagate = False
        logger.addHandler(self)
        self._file = RotatingFileHandler(
            folder / "noctuary.log", maxBytes=FILE_BYTES, backupCount=FILE_COUNT, encoding="utf-8", delay=True
        )
        self._file.setFormatter(_JsonLine())
        logger.addHandler(self._file)

    def shut(self) -> None:
        """Stop gathering. What was gathered stays readable."""
        logger = logging.getLogger(LOGGER)
        logger.removeHandler(self)
        if self._file is not None:
            logger.removeHandler(self._file)
            self._file.close()
            self._file = None

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record (called by logging, from any thread)."""
        line = LogRecord(
            datetime.fromtimestamp(record.created, UTC),
            record.levelname.lower(),
            record.name.removeprefix(LOGGER + "."),
            record.getMessage(),
        )
        self._records.append(line)
        for listener in tuple(self._listeners):
            try:
                listener(line)
            # Whoever logs must not fall over whoever listens; logging's own way to tell of it.
            except Exception:  # noqa: BLE001
                self.handleError(record)

    def records(self) -> list[LogRecord]:
        """What was gathered, newest last."""
        return list(self._records)

    def listen(self, callback: Callable[[LogRecord], None]) -> Callable[[], None]:
        """Call `callback` with every new record, on the thread that made it. Returns how to stop."""
        self._listeners.append(callback)

        def unlisten() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(callback)

        return unlisten


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
