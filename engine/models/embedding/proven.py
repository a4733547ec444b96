"""An embedder that tells whether it works: proven by a vector really made, in trouble since one was not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from engine.models.embedding.base import Embedder, Vectors


class ProvenEmbedder:
    """Hands everything on to `embedder`. `on_change` hears when `proven` or `trouble` changes."""

    def __init__(self, embedder: Embedder, on_change: Callable[[], None]) -> None:
        self._embedder = embedder
        self._on_change = on_change
        self.proven = False
        """Whether the last vector that was asked for was made."""
        self.trouble = ""
        """Why it was not, as a sentence; empty when it was, or none was asked for yet."""

    @property
    def provider(self) -> str:
        """See `Embedder.provider`."""
        return self._embedder.provider

    @property
    def model(self) -> str:
        """See `Embedder.model`."""
        return self._embedder.model

    @property
    def model_id(self) -> str:
        """See `Embedder.model_id`."""
        return self._embedder.model_id

    @property
    def dimension(self) -> int:
        """See `Embedder.dimension`."""
        return self._embedder.dimension

    @property
    def token_limit(self) -> int:
        """See `Embedder.token_limit`."""
        return self._embedder.token_limit

    @property
    def default_distance(self) -> float:
        """See `Embedder.default_distance`."""
        return self._embedder.default_distance

    @property
    def distance_across(self) -> float:
        """See `Embedder.distance_across`."""
        return self._embedder.distance_across

    @property
    def unrelated_distance(self) -> float:
        """See `Embedder.unrelated_distance`."""
        return self._embedder.unrelated_distance

    @property
    def meaning_share(self) -> float:
        """See `Embedder.meaning_share`."""
        return self._embedder.meaning_share

    async def ready(self) -> None:
        """See `Embedder.ready`."""
        try:
            await self._embedder.ready()
        except ModelError as error:
            self._note(str(error))
            raise

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`."""
        return await self._watched(self._embedder.passages(texts))

    async def query(self, text: str) -> Vectors:
        """See `Embedder.query`."""
        return await self._watched(self._embedder.query(text))

    def reads(self, text: str) -> float:
        """See `Embedder.reads`."""
        return self._embedder.reads(text)

    async def close(self) -> None:
        """See `Embedder.close`."""
        await self._embedder.close()

    async def _watched(self, making: Awaitable[Vectors]) -> Vectors:
        try:
            vectors = await making
        except ModelError as error:
            self._note(str(error))
            raise
        self._note("")
        return vectors

    def _note(self, trouble: str) -> None:
        before = (self.proven, self.trouble)
        self.proven, self.trouble = not trouble, trouble
        if before != (self.proven, self.trouble):
            self._on_change()
