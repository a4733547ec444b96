"""What the database tells its callers: plain values, free to import before any driver is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OnState = Callable[[str], None]
"""Takes one short sentence on what a slow opening is doing now; called on the event loop."""

RECONNECTED = "reconnected"
"""Topic of the synthetic change that follows a lost feed: anything may have changed meanwhile."""

LOST = "lost"
"""Topic of the synthetic change that tells of it at once, to those who ask for it by name."""


@dataclass(frozen=True, slots=True)
class Change:
    """Rows of the table `topic` changed, in this process or in another."""

    topic: str


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """The server in use. `location` is a folder (embedded) or an address without its password;
    `warnings` are sentences on what works, but less well than it could.
    """

    version: str
    pgvector: str
    embedded: bool
    location: str
    warnings: tuple[str, ...] = ()


def without_repeats(on_state: OnState) -> OnState:
    """`on_state`, told only what differs from the sentence before."""
    told = ""

    def tell(state: str) -> None:
        nonlocal told
        if state != told:
            told = state
            on_state(state)

    return tell


def silent(_state: str) -> None:
    """The `on_state` of a caller who does not want to know."""
