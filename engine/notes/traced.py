"""The nouns of traces: what was asked of the notes, by whom, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from engine.notes.model import SearchResult


class TraceKind(StrEnum):
    """What was done with a query."""

    SEARCH = "search"
    ASK = "ask"


@dataclass(frozen=True, slots=True)
class Trace:
    """One search or ask. `door` is the program it came through; `answered` says of a search that something
    was found, of an ask that there is an answer. Seconds are those of the engine. `at` None: now.
    """

    kind: TraceKind
    door: str
    query: str
    citations: int
    seconds: float
    answered: bool
    prompt_version: str | None = None
    provider: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    trouble: str = ""
    at: datetime | None = None
    id: int | None = None


class Searched(Protocol):
    """Who hears of a search that was made, if `typing` of one that the next letter may continue."""

    def __call__(self, result: SearchResult, *, typing: bool) -> None:
        """Take a search that was made."""


def untraced(result: SearchResult, *, typing: bool) -> None:
    """Nobody."""
    del result, typing
