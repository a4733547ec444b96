"""Memory: agents' turns become packets, packets become lessons, and a person throws out the wrong ones."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.memory import brains, metrics, packets
from engine.memory.brains import entered
from engine.memory.embeddings import EMBEDDER, Embeddings
from engine.memory.gate import Gate
from engine.memory.importing import Importing
from engine.memory.lessons import Lessons
from engine.memory.meaning import Meaning
from engine.memory.model import LOCAL
from engine.memory.recalling import Recall
from engine.memory.synthesis import Synthesis

if TYPE_CHECKING:
    from datetime import datetime

    from engine.database import Database
    from engine.language import Language
    from engine.memory.meaning import Models
    from engine.memory.model import (
        BrainKey,
        Core,
        Metrics,
        PacketRow,
        Prepared,
        Recalled,
        Recorded,
        SourceTurn,
        Verified,
    )
    from engine.services import Services
    from engine.settings import Settings

__all__ = ["Memory"]

MOST_ROWS = 1_000
"""Packets that are listed at once."""


class Memory:
    """The memory of one process. `models` give vectors, `language` distils."""

    def __init__(self, database: Database, settings: Settings, models: Models, language: Language) -> None:
        self._database = database
        meaning = Meaning(models)
        self.lessons: Lessons = Lessons(database, meaning, settings)
        self.synthesis: Synthesis = Synthesis(database, meaning, self.lessons, language, settings)
        self.embeddings: Embeddings = Embeddings(database, meaning)
        self.importing: Importing = Importing(database, meaning)
        self._gate = Gate(database, settings, meaning, Recall(settings), self.lessons)

    def start(self, services: Services) -> None:
        """Keep vectors being made in the background."""
        services.start(EMBEDDER, self.embeddings.run)

    async def catch_up(self, seconds: float) -> None:
        """Make the vectors that are wanted, as far as that goes in so many seconds: for who asks at once, and
        has no background. A model that makes none says so when it is asked.
        """
        with suppress(TimeoutError, ModelError):
            async with asyncio.timeout(seconds):
                await self.embeddings.run_until_idle()

    # Brains

    async def cores(self, account: str = LOCAL) -> list[Core]:
        """The cores of an account, the default one first."""
        return await brains.cores(self._database, account)

    async def add_core(self, slug: str, name: str | None = None, account: str = LOCAL) -> Core:
        """Make a core; the first of an account is its default one.

        Raises:
            BrainError: it cannot be named like that, or there is one of that name.
        """
        return await brains.add_core(self._database, slug, name, account)

    # Turns

    async def prepare(
        self,
        key: BrainKey,
        text: str,
        *,
        constitution: str | None = None,
        channel: str | None = None,
        door: str = "",
    ) -> Prepared:
        """See `Gate.prepare`."""
        return await self._gate.prepare(key, text, constitution=constitution, channel=channel, door=door)

    async def verify(self, key: BrainKey, answer: str, turn_token: str | None = None) -> Verified:
        """See `Gate.verify`."""
        return await self._gate.verify(key, answer, turn_token)

    async def record(
        self, key: BrainKey, turn_token: str, answer: str, *, occurred_at: datetime | None = None
    ) -> Recorded:
        """See `Gate.record`."""
        return await self._gate.record(key, turn_token, answer, occurred_at=occurred_at)

    async def remember(
        self,
        key: BrainKey,
        text: str,
        *,
        response: str = "",
        speaker: str = "",
        channel: str | None = None,
        occurred_at: datetime | None = None,
        door: str = "",
    ) -> Recorded:
        """See `Gate.remember`."""
        return await self._gate.remember(
            key,
            text,
            response=response,
            speaker=speaker,
            channel=channel,
            occurred_at=occurred_at,
            door=door,
        )

    async def recall(self, key: BrainKey, text: str, k: int | None = None) -> Recalled:
        """See `Gate.recall`."""
        return await self._gate.recall(key, text, k)

    async def recent(self, key: BrainKey, limit: int = 20) -> list[PacketRow]:
        """The newest packets of a brain, newest first."""
        async with entered(self._database, key) as (connection, brain):
            return await packets.recent(connection, brain, min(limit, MOST_ROWS))

    async def turns(self, key: BrainKey, packet_ids: list[int]) -> list[SourceTurn]:
        """The turns behind packets of a brain, oldest first."""
        async with entered(self._database, key) as (connection, brain):
            return await packets.turns(connection, brain, packet_ids)

    async def metrics(self, key: BrainKey) -> Metrics:
        """Counts of a brain."""
        async with entered(self._database, key) as (connection, brain):
            return await metrics.of(connection, brain)
