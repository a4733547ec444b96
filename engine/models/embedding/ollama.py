"""An embedder that Ollama runs, on this machine or another: reached over HTTP, known once it answered.

Ollama works one request for vectors off after another, so a question waits for the request in hand:
passages go in requests of about a second, one at a time, and between two of them a question has its turn.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import ModelError
from engine.models.embedding import bundled, calibration, ollama_server, spans
from engine.models.embedding.base import OLLAMA
from engine.models.embedding.languages import MOST_LETTERS
from engine.models.embedding.ollama_families import family, is_known
from engine.models.embedding.ollama_server import OllamaServer, installed, pull
from engine.models.embedding.pace import Pace
from engine.models.embedding.windows import normalised

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from engine.models.embedding.base import Vectors
    from engine.models.embedding.spans import Span

__all__ = ["DEFAULT_MODEL", "OllamaEmbedder", "installed", "pull"]

DEFAULT_MODEL = "qwen3-embedding:0.6b"
"""knowman's default at EMBEDDINGS_MODEL."""

TOKEN_LIMIT = 512
"""Tokens a request holds of one text, whatever the model's context: beyond Ollama's batch of 512 some of
its versions crash and others cut (ollama#16687, #14259), and a longer window takes a CPU seconds."""

ROOM = 16
"""Tokens of a window left to the model's own signs."""

LOOK_AGAIN_SECONDS = 60.0
"""After so long `ready` asks again whether the model is the one it was."""

DIGEST = 12
"""Digits of a model's digest that tell versions apart, as `ollama list` shows them."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the server told of the model."""

    digest: str
    model_id: str
    dimension: int
    token_limit: int


class OllamaEmbedder:
    """A model at an Ollama. Free to make; it connects on first use, and again after a failure.

    `distances` keeps the measured `default_distance` by `model_id`: what is in it is not measured again.
    """

    provider = OLLAMA

    def __init__(
        self, url: str, model: str | None = None, *, distances: MutableMapping[str, float] | None = None
    ) -> None:
        self.model = model or DEFAULT_MODEL
        self._family = family(self.model)
        self._server = OllamaServer(url)
        self._distances = {} if distances is None else distances
        self._pace = Pace()
        self._opening = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._known: _Known | None = None
        self._name = self.model
        """The model's name as the server writes it."""
        self._looked = 0.0
        self._doubtful = False

    @property
    def model_id(self) -> str:
        """See `Embedder.model_id`: the model's name and the digest of its files."""
        return self._told().model_id

    @property
    def dimension(self) -> int:
        """See `Embedder.dimension`."""
        return self._told().dimension

    @property
    def token_limit(self) -> int:
        """See `Embedder.token_limit`."""
        return self._known.token_limit if self._known else TOKEN_LIMIT

    @property
    def default_distance(self) -> float:
        """See `Embedder.default_distance`: measured by `ready` on the pairs of `calibration`.

        Raises:
            ModelError: `ready` was not called.
        """
        distance = self._distances.get(self._told().model_id)
        if distance is None:
            raise self._not_ready()
        return distance

    @property
    def distance_across(self) -> float:
        """See `Embedder.distance_across`: not measured, so the same."""
        return self.default_distance

    @property
    def meaning_share(self) -> float:
        """See `Embedder.meaning_share`: not measured, so that of the bundled model."""
        return bundled.MEANING_SHARE

    @property
    def unrelated_distance(self) -> float:
        """See `Embedder.unrelated_distance`: as far beyond the default distance as with the bundled model."""
        return self.default_distance * bundled.UNRELATED_DISTANCE / bundled.DEFAULT_DISTANCE

    async def ready(self) -> None:
        """See `Embedder.ready`. Also notes that the model was pulled anew: then its id is another.

        It asks the server only when a call failed since, or after a minute.
        """
        async with self._opening:
            age = time.monotonic() - self._looked
            if self._known is None or self._doubtful or age > LOOK_AGAIN_SECONDS:
                await self._look()
            known = self._told()
            if known.model_id not in self._distances:
                self._distances[known.model_id] = await self._calibrated(known)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`: requests of about a second, each waiting for its turn."""
        return await self._vectors(texts, self._family.passage, await self._opened(), self._turn)

    async def query(self, text: str) -> Vectors:
        """See `Embedder.query`: a request of its own, behind at most the one in hand."""
        vectors = await self._vectors([text], self._family.query, await self._opened(), nullcontext())
        return vectors.reshape(-1)

    def reads(self, text: str) -> float:
        """See `Embedder.reads`: a multilingual family reads whatever has letters; of any other the
        bundled model's word list is the judge, since both learned from English.
        """
        if self._family.multilingual:
            return float(any(character.isalpha() for character in text[:MOST_LETTERS]))
        return bundled.reads(text)

    async def close(self) -> None:
        """See `Embedder.close`."""
        await self._server.close()

    async def _opened(self) -> _Known:
        """What is known of the model, once the server was reached."""
        if self._known is None:
            async with self._opening:
                if self._known is None:
                    await self._look()
        return self._told()

    async def _look(self) -> None:
        """Find the model at the server, and learn about it when it is new or another than before."""
        name, digest = await self._found()
        self._name = name
        if self._known is None or self._known.digest != digest:
            card = await self._server.card(name)
            if card.embeds is False and not is_known(name):
                raise ollama_server.no_embedder(self.model)
            (vector,) = await self._embedded(["dimension"], None)
            model_id = f"{OLLAMA}:{name}@{digest[:DIGEST]}"
            limit = min(card.context or TOKEN_LIMIT, TOKEN_LIMIT)
            self._known = _Known(digest, model_id, len(vector), limit)
        self._looked, self._doubtful = time.monotonic(), False

    async def _found(self) -> tuple[str, str]:
        """The model's full name and digest at the server.

        Raises:
            ModelError: The server does not answer or has no such model.
        """
        wanted = self.model.lower()
        for listed in await self._server.models():
            name = listed.model or ""
            if name.lower() in {wanted, f"{wanted}:latest"}:
                return name.removesuffix(":latest"), (listed.digest or "").removeprefix(
                    "sha256:"
                ) or "unknown"
        raise ollama_server.missing(self.model)

    async def _calibrated(self, known: _Known) -> float:
        """The model's distance, from requests of many pairs each."""
        questions = await self._vectors(calibration.QUESTIONS, self._family.query, known, self._turn)
        passages = await self._vectors(calibration.PASSAGES, self._family.passage, known, self._turn)
        return calibration.limit(questions, passages)

    async def _vectors(
        self,
        texts: Sequence[str],
        prefix: str,
        known: _Known,
        turn: AbstractAsyncContextManager[object],
    ) -> Vectors:
        """Vectors of texts of any length, each window with the prefix before it."""
        room = max(known.token_limit - ROOM - spans.costs(prefix).sum(), known.token_limit / 2)
        waiting = spans.cut_all(texts, room)
        read: list[tuple[Span, Vectors]] = []
        while waiting:
            async with turn:
                batch = self._pace.batch(waiting)
                started = time.monotonic()
                read += await self._read(batch, prefix, known.dimension)
                self._pace.took(batch, time.monotonic() - started)
            waiting = waiting[len(batch) :]
        return spans.pooled(read, len(texts), known.dimension)

    async def _read(self, batch: Sequence[Span], prefix: str, dimension: int) -> list[tuple[Span, Vectors]]:
        """The spans with their vectors; what proves too long for the model is read in halves."""
        try:
            rows = await self._embedded([prefix + span.body for span in batch], dimension)
        except ollama_server.TooLongError:
            middle = len(batch) // 2
            parts = [batch[:middle], batch[middle:]] if middle else [spans.halves(batch[0])]
            if not parts[-1]:
                raise
            return [pair for part in parts for pair in await self._read(part, prefix, dimension)]
        return list(zip(batch, rows, strict=True))

    async def _embedded(self, texts: Sequence[str], dimension: int | None) -> Vectors:
        """One request: vectors of length 1, found to be what vectors must be."""
        try:
            rows = self._checked(await self._server.embed(self._name, texts), dimension)
        except ModelError:
            self._doubtful = True
            raise
        return normalised(rows)

    def _checked(self, rows: Sequence[Sequence[float]], dimension: int | None) -> Vectors:
        """The vectors as an array.

        Raises:
            ModelError: They are of another length, or not numbers, or nothing but zeros.
        """
        lengths = {len(row) for row in rows}
        expected = {dimension} if dimension else lengths
        if lengths != expected or len(lengths) != 1 or lengths == {0}:
            told = f"vectors of {', '.join(map(str, sorted(lengths)))} numbers"
            wanted = f", not of {dimension}" if dimension else ""
            raise ModelError(f"{self.model} at {self._server.name} gave {told}{wanted}.", remedy=_PULL)
        with np.errstate(over="ignore"):
            vectors = np.asarray(rows, np.float32)
        if not np.isfinite(vectors).all() or not vectors.any(axis=1).all():
            raise ModelError(
                f"{self.model} at {self._server.name} gave a vector without a direction.", remedy=_PULL
            )
        return vectors

    def _told(self) -> _Known:
        if self._known is None:
            raise self._not_ready()
        return self._known

    def _not_ready(self) -> ModelError:
        return ModelError(f"{self.model} was not reached at {self._server.name} yet.")


_PULL = "Update Ollama, pull the model again, or choose another."
