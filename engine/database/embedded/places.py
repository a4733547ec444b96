"""Where the embedded server keeps what: the data folder itself, and the files beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """The paths below the program's data folder `data`; none is made by naming it."""

    data: Path

    @property
    def folder(self) -> Path:
        """PostgreSQL's own data folder."""
        return self.data / "postgres"

    @property
    def unfinished(self) -> Path:
        """Where that is made at the first start, until it is whole."""
        return self.data / "postgres.new"

    @property
    def log(self) -> Path:
        """What the server says."""
        return self.data / "postgres.log"

    @property
    def lock(self) -> Path:
        """Held alone by whoever starts or stops the server."""
        return self.data / "postgres.lock"

    @property
    def users(self) -> Path:
        """Held shared by every user; who can have it alone is the last."""
        return self.data / "postgres.users"

    @property
    def serving(self) -> Path:
        """Held by every process of the server.

        It tells for certain whether one lives, which a pid cannot: not when the number was used again,
        not when the first process was killed and others still write, and not from another container.
        """
        return self.data / "postgres.serving"
