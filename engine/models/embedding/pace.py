"""How much a request to a remote model holds, so that each takes about a second wherever it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.models.embedding.spans import Span

SECONDS = 1.0
"""The longest a request should take: what a question may have to wait for."""

SMALLEST, FIRST, LARGEST = 64.0, 512.0, 16_384.0
"""Estimated tokens a request: the least, the first, and the most that is sent to the quickest machine."""

MOST_TEXTS, MOST_CHARACTERS = 64, 65_536
"""Bounds of a request, whatever its tokens: what is sent again when it fails, and held in memory."""


class Pace:
    """Learns from how long requests took."""

    def __init__(self) -> None:
        self.tokens = FIRST

    def batch(self, waiting: Sequence[Span]) -> Sequence[Span]:
        """The first spans, as many as a request should hold; at least one."""
        cost, characters = 0.0, 0
        for count, span in enumerate(waiting[:MOST_TEXTS]):
            cost, characters = cost + span.cost, characters + len(span.body)
            if count and (cost > self.tokens or characters > MOST_CHARACTERS):
                return waiting[:count]
        return waiting[:MOST_TEXTS]

    def took(self, batch: Sequence[Span], seconds: float) -> None:
        """Learn from a request: slow ones shrink the next at once, and full, quick ones double it."""
        cost = sum(span.cost for span in batch)
        if seconds > SECONDS:
            self.tokens = max(SMALLEST, cost * SECONDS / seconds)
        elif seconds < SECONDS / 2 and cost > self.tokens / 2:
            self.tokens = min(LARGEST, self.tokens * 2)
