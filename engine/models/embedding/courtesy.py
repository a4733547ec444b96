"""Vectors that nobody waits for are made between questions, not beside them.

Embedding takes all cores. Its threads are nice, but they share caches and memory with a search, which then
takes twice as long. So a backlog works `patiently`: between two calls of a local model it waits until no
question was asked in this process for a moment. A person who types gets the machine; a program that never
stops asking gets it for `PATIENCE` at a time.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

QUIET = 0.5
"""Seconds without a question after which it is taken that no other follows: longer than between two keys."""

PATIENCE = 5.0
"""Seconds after which a call is made whatever is asked."""

_patient: ContextVar[bool] = ContextVar("patient", default=False)


class Questions:
    """The questions of this process."""

    def __init__(self) -> None:
        self._open = 0
        self._last = float("-inf")

    @contextmanager
    def asked(self) -> Iterator[None]:
        """While a question is being answered."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self._last = time.monotonic()

    def pause(self) -> float:
        """Seconds until it will have been quiet for long enough, if nothing is asked; 0 when it is quiet."""
        if self._open:
            return QUIET
        return max(0.0, self._last + QUIET - time.monotonic())

    async def give_way(self) -> None:
        """Wait for quiet, where the caller works `patiently`; at most PATIENCE seconds."""
        if not _patient.get():
            return
        until = time.monotonic() + PATIENCE
        while (pause := self.pause()) and time.monotonic() < until:  # noqa: ASYNC110 - quiet is time passing
            await asyncio.sleep(pause)


QUESTIONS = Questions()
"""One for the process: its models share the cores."""


@contextmanager
def patiently() -> Iterator[None]:
    """What is embedded in this block, nobody waits for."""
    token = _patient.set(True)
    try:
        yield
    finally:
        _patient.reset(token)
