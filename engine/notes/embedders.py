"""The embedding models of a running process: the one that makes vectors, and the one that answers.

They are the same but while the model is being changed: the new one makes its vectors in the background,
and the last one that had all of them answers until then, and reads what is saved meanwhile. The change is
one row's update, seen by every process; it goes on where it was left, and back by choosing the old model,
whose vectors are kept.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.errors import ModelError, SettingsError
from engine.models.embedding.base import embedder_of
from engine.models.embedding.proven import ProvenEmbedder
from engine.notes import languages, models
from engine.notes.backlog import Backlog, named
from engine.notes.interim import Interim
from engine.notes.model import EmbeddingProgress
from engine.notes.tally import index_counts
from engine.notes.trial import trial
from engine.notes.waking import wake_on
from engine.settings import DEFAULT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.models.embedding.base import Embedder, Vectors
    from engine.notes.model import FolderId, ModelRow, ModelTrial, PullProgress
    from engine.notes.models import Known
    from engine.services import Services
    from engine.settings import Settings

EMBEDDER = "embedder"
"""The background service that makes vectors."""

_log = logging.getLogger("noctuary.embedding")


@dataclass(frozen=True, slots=True)
class Served:
    """A model that can answer: `name` is what the index calls the version its vectors are of."""

    embedder: ProvenEmbedder
    id: int
    dimension: int
    name: str
    backlog: Backlog

    async def query(self, text: str) -> Vectors:
        """A question's vector in the space of the index's own.

        Raises:
            ModelError: the model does not answer, or is not the version whose vectors the index has.
        """
        await self.embedder.ready()
        if self.embedder.model_id != self.name:
            raise ModelError(
                f"The index has vectors of {self.name}, and the model is now {self.embedder.model_id}.",
                remedy="New vectors are made in the background.",
            )
        return await self.embedder.query(text)


def is_explicit(settings: Settings) -> bool:
    """Whether the settings themselves name the model; otherwise the choice made for the index holds."""
    return any(settings.source(name) != DEFAULT for name in ("embeddings_provider", "embeddings_model"))


async def wanted(database: Database, settings: Settings) -> Embedder:
    """The embedder this process shall use: of its settings, else as chosen for the index, else the default.

    Raises:
        SettingsError: it names a provider or model that does not exist.
    """
    async with database.connection() as connection:
        choice = None if is_explicit(settings) else await models.chosen(connection)
        distances = await models.distances(connection)
    provider, model = choice or (settings.embeddings_provider, settings.embeddings_model)
    return embedder_of(provider, model, settings, distances)


class Embedders:
    """The models of one process. `on_change` hears when one of them begins or ceases to work."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        embedder: Embedder,
        on_change: Callable[[], None],
        foreign: Callable[[], Sequence[FolderId]] = tuple,
    ) -> None:
        self._foreign = foreign
        self._database = database
        self._settings = settings
        self._on_change = on_change
        self._embedder = ProvenEmbedder(embedder, on_change)
        self.backlog = Backlog(database, self._embedder, foreign)
        self.serving: Served | None = None
        self.interim = Interim(database, self)
        self._deciding = asyncio.Lock()
        self.unread = 0.0
        """Share (0..1) of the passages in languages that the model hardly reads, when last judged."""
        self._judged = 0

    async def judge(self) -> None:
        """Look whether the model reads the languages of the notes, where these are not what they were."""
        before = self.suggestion
        async with self._database.connection() as connection:
            count = (await index_counts(connection)).passages
            if abs(count - self._judged) * languages.OTHERWISE <= count:
                return
            self.unread = await languages.unread(connection, self._embedder.reads)
        self._judged = count
        if self.suggestion != before:
            self._on_change()

    @property
    def suggestion(self) -> str:
        """The sentence that suggests another model, when this one hardly reads much of the notes."""
        return languages.suggestion(self.unread, self._embedder.model)

    @property
    def making(self) -> Served | None:
        """The model that makes vectors, once the index knows it."""
        return _served(self._embedder, self.backlog.known, self.backlog)

    @property
    def meanwhile(self) -> Backlog | None:
        """The backlog of the model that answers while another is in the making; None when none is."""
        serving = self.serving
        return serving.backlog if serving and serving.backlog is not self.backlog else None

    def models(self) -> list[int]:
        """The models of which a new note shall get vectors."""
        return [each.id for each in self.answering()]

    @property
    def wanted(self) -> str:
        """The model that makes vectors, as settings or choice name it: provider/model."""
        return f"{self._embedder.provider}/{self._embedder.model}"

    @property
    def trouble(self) -> str:
        """Why the model made no vector when it was last asked for one; empty when it did."""
        return self._embedder.trouble

    def answering(self) -> list[Served]:
        """The models to ask for a question's vector, until one gives it."""
        candidates = [self.serving, self.making]
        return list({each.id: each for each in candidates if each is not None}.values())

    def absence(self) -> ModelError:
        """Why no model can be asked, where `answering` is empty."""
        reason = self.trouble or f"The index has no vectors of {named(self._embedder)} yet."
        return ModelError(reason)

    async def prepare(self) -> None:
        """Take the model up as the index knows it, without waiting for one that has to be reached first."""
        async with self._database.connection() as connection:
            self.backlog.known = await models.latest(
                connection, self._embedder.provider, self._embedder.model
            )
        if self.backlog.known is None and named(self._embedder) != self._embedder.model:
            await self.backlog.register()
        await self.refresh()

    async def settle(self) -> None:
        """Reach the model and register it as it is now.

        Raises:
            ModelError: it cannot be reached, or its vectors cannot be kept.
        """
        await self.backlog.register()
        await self.refresh()

    async def refresh(self) -> None:
        """Decide anew which model answers: the one in the making once it is complete, until then the last
        that was. Where none ever was, the one in the making answers as far as it is.
        """
        async with self._deciding:
            await self._decide()

    async def _decide(self) -> None:
        known = self.backlog.known
        async with self._database.connection() as connection:
            fresh = await models.by_id(connection, known.id) if known else None
            complete = await models.last_complete(connection)
        if self.backlog.known is known:  # else it was registered as another meanwhile
            self.backlog.known = known = fresh
        if complete is None or (known is not None and (known.complete_at or known.id == complete.id)):
            await self._serve(self.making)
        elif self.serving is None or self.serving.id != complete.id:
            await self._serve(await self._other(complete) or self.making)

    async def _other(self, known: Known) -> Served | None:
        """A model that is not the one in the making, opened to answer."""
        async with self._database.connection() as connection:
            distances = await models.distances(connection)
        try:
            embedder = embedder_of(known.provider, known.model, self._settings, distances)
        except SettingsError as error:
            _log.warning("%s cannot answer until the new model has its vectors: %s", known.name, error)
            return None
        proven = ProvenEmbedder(embedder, self._on_change)
        backlog = Backlog(self._database, proven, self._foreign)
        backlog.known = known
        return _served(proven, known, backlog)

    async def _serve(self, new: Served | None) -> None:
        before, self.serving = self.serving, new
        if before is not None and new is not None and before.id != new.id:
            _log.info("searches are answered by %s now, not by %s", new.name, before.name)
        await self._close_unused(before)

    async def _close_unused(self, before: Served | None) -> None:
        kept = [self._embedder, *([self.serving.embedder] if self.serving else [])]
        if before is not None and not any(before.embedder is each for each in kept):
            await before.embedder.close()

    def differs(self, embedder: Embedder) -> bool:
        """Whether this is another model than the one in the making."""
        return (embedder.provider, embedder.model) != (self._embedder.provider, self._embedder.model)

    async def run(self) -> None:
        """Make vectors until cancelled, from the moment the model can be reached.

        Raises:
            ModelError: it cannot; whoever runs this tries again later.
        """
        await self.settle()
        await self.backlog.fill()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.backlog.run())
            for topic in ("job", "embedding"):
                group.create_task(wake_on(self._database, topic, self.backlog.wake))

    async def run_until_idle(self) -> None:
        """Make all vectors that no other process has in hand.

        Raises:
            ModelError: the model cannot be reached, or makes none.
        """
        await self.interim.run_until_idle()
        await self.settle()
        await self.backlog.fill()
        await self.backlog.run_until_idle()
        await self.refresh()

    async def follow(self, services: Services) -> None:
        """Take up what is chosen for the index, and let the right model answer, until cancelled."""
        async for _ in self._database.feed.subscribe("model", "chosen_model"):
            new = await wanted(self._database, self._settings)
            if not self.differs(new):
                await new.close()
                await self.refresh()
                continue
            running = services.running(EMBEDDER)
            await services.stop(EMBEDDER)
            await self.change(new)
            if running:
                services.start(EMBEDDER, self.run)

    async def change(self, embedder: Embedder) -> None:
        """Make vectors with another model from now on. The backlog of the old one must not be running."""
        before = self._embedder
        self._embedder = ProvenEmbedder(embedder, self._on_change)
        self.unread, self._judged = 0.0, 0  # of the model before
        self.backlog = Backlog(self._database, self._embedder, self._foreign)
        await self.prepare()
        if self.serving is None or self.serving.embedder is not before:
            await before.close()
        self._on_change()

    async def choose(self, provider: str, model: str | None) -> str:
        """Choose a model for the index, once it was seen to work. Returns its id.

        Every process whose settings name none takes it up at once; searches are answered by the last
        complete one until it has its vectors.

        Raises:
            SettingsError: the settings name a model themselves, or the provider does not have this one.
            ModelError: it cannot be loaded or reached.
        """
        if is_explicit(self._settings):
            source = next(
                source
                for source in map(self._settings.source, ("embeddings_provider", "embeddings_model"))
                if source != DEFAULT
            )
            raise SettingsError(
                f"The model is named by the settings (from {source}).",
                remedy="Change it there, or remove it.",
            )
        embedder = embedder_of(provider, model, self._settings)
        try:
            await embedder.ready()
            async with self._database.transaction() as connection:
                await models.choose(connection, embedder.provider, embedder.model)
            _log.info("%s/%s was chosen to make the vectors", embedder.provider, embedder.model)
            return embedder.model_id
        finally:
            await embedder.close()

    async def listing(self) -> list[ModelRow]:
        """Every model the index knows, with its vectors counted."""
        making, answers = self.making, self.serving
        async with self._database.connection() as connection:
            return await models.listing(connection, making.id if making else 0, answers.id if answers else 0)

    async def forget(self, name: str) -> None:
        """Remove the vectors of a model that is not in use.

        Raises:
            ModelError: the index knows no model of that name, or it is in use.
        """
        async with self._database.connection() as connection:
            known = await models.named(connection, name)
            if known is None:
                names = ", ".join(row.name for row in await self.listing()) or "none"
                raise ModelError(f"The index knows no model {name!r}.", remedy=f"It knows: {names}.")
            if any(each.id == known.id for each in self.answering()):
                raise self._in_use(known)
            await models.forget(connection, known.id)

    def _in_use(self, known: Known) -> ModelError:
        if self.making is not None and self.making.id != known.id:
            remedy = f"Wait until {self.making.name}, which is chosen, has its vectors."
            return ModelError(f"{known.name} still answers.", remedy=remedy)
        return ModelError(
            f"{known.name} is in use.", remedy="Choose another model first: noctuary models use."
        )

    async def tried(self, provider: str | None, model: str | None) -> ModelTrial:
        """A model tried now; without a provider the one this process uses.

        Raises:
            SettingsError: there is no such provider, or it does not have the model.
            ModelError: it cannot be loaded or reached, or makes no vectors.
        """
        if provider is None:
            embedder = await wanted(self._database, self._settings)
        else:
            embedder = embedder_of(provider, model, self._settings)
        try:
            return await trial(embedder)
        finally:
            await embedder.close()

    async def pull(self, model: str) -> AsyncIterator[PullProgress]:
        """Have Ollama fetch a model; each sign of life it gives.

        Raises:
            ModelError: it does not answer, or cannot get the model.
        """
        from engine.models.embedding.ollama_server import pull

        async for part in pull(self._settings.ollama_url, model):
            yield part

    async def progress(self, connection: AsyncConnection, *, exact: bool) -> EmbeddingProgress:
        """How far the vectors are, of which model, and which one answers meanwhile."""
        if self.backlog.model is None:
            found = EmbeddingProgress(named(self._embedder), 0, 0)
        else:
            found = await self.backlog.progress(connection, exact=exact)
        other = self.serving if self.serving and self.serving.id != self.backlog.model else None
        return replace(
            found,
            proven=self._embedder.proven,
            trouble=self._embedder.trouble,
            serving=other.name if other else "",
            suggestion=self.suggestion,
        )

    async def close(self) -> None:
        """Close every model."""
        await self._embedder.close()
        if self.serving is not None and self.serving.embedder is not self._embedder:
            await self.serving.embedder.close()


def _served(embedder: ProvenEmbedder, known: Known | None, backlog: Backlog) -> Served | None:
    return None if known is None else Served(embedder, known.id, known.dimension, known.name, backlog)
