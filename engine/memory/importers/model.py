"""The nouns of importing: turns as files tell them, what is passed over, and a question with its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ImportedTurn:
    """What one message says. `key` knows it again within its channel; `at` is None where the file does not
    tell a time; `origin` is the file and the place in it.
    """

    key: str
    channel: str
    author: str
    """user or assistant."""
    text: str
    at: datetime | None
    origin: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Skip:
    """What was passed over, and why."""

    origin: str
    reason: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a user said with all that was answered before the next. `complete` tells that something
    follows it, so that no more of its answer comes.
    """

    key: str
    channel: str
    input: str
    response: str | None
    at: datetime | None
    origin: str
    speaker: str = ""
    complete: bool = True


class Reader(Protocol):
    """A kind of file that conversations are imported from."""

    def files(self, path: Path) -> list[Path]:
        """The files of the kind in a folder, or the file itself."""

    def read(self, path: Path) -> Iterator[ImportedTurn | Skip]:
        """What a file says, in its order, with bounded memory.

        Raises:
            SourceError: it is not a file of the kind.
            OSError: it cannot be read.
        """
