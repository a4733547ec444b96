"""Any model of the library sentence-transformers: from a folder, or from the hub by its name.

The library is blocking and runs in threads here (`sentence_model`): one loads, one embeds passages in
short calls, which is nice where threads can be, and one answers questions beside it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from engine.errors import ModelError
from engine.models.embedding.base import SENTENCE_TRANSFORMERS
from engine.models.embedding.bundled import DEFAULT_DISTANCE, MEANING_SHARE, NICENESS, UNRELATED_DISTANCE
from engine.models.embedding.courtesy import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engine.models.embedding.sentence_model import SentenceModel

    Vectors = NDArray[np.float32]

Given = ParamSpec("Given")
Made = TypeVar("Made")

DEFAULT_MODEL = "paraphrase-multilingual-MiniLM-L12-v2"
"""50 languages, 384 dimensions, 470 MB."""

CALL_TOKENS, CALL_TEXTS = 512, 16
"""What a call holds, padding included, unless one window is more: cancelling waits for a call."""


class SentenceTransformersEmbedder:
    """A model by its name on the hub or its folder. Loaded off the event loop; free to make."""

    provider = SENTENCE_TRANSFORMERS

    def __init__(self, model: str | None = None) -> None:
        self.model = model or DEFAULT_MODEL
        self._loaded: SentenceModel | None = None
        self._loading: asyncio.Task[SentenceModel] | None = None
        self._measuring = asyncio.Lock()
        self._distance: float | None = None
        self._closed = False
        self._passages = ThreadPoolExecutor(1, "st-passages", initializer=_be_nice)
        self._queries = ThreadPoolExecutor(1, "st-query")

    @property
    def model_id(self) -> str:
        """See `Embedder.model_id`: the name, and the hub's revision or a fingerprint of the files.

        Raises:
            ModelError: `ready` was not called.
        """
        return self._known().model_id

    @property
    def dimension(self) -> int:
        """See `Embedder.dimension`.

        Raises:
            ModelError: `ready` was not called.
        """
        return self._known().dimension

    @property
    def token_limit(self) -> int:
        """See `Embedder.token_limit`.

        Raises:
            ModelError: `ready` was not called.
        """
        return self._known().token_limit

    @property
    def default_distance(self) -> float:
        """See `Embedder.default_distance`: measured by `ready` on the pairs of `calibration`.

        Raises:
            ModelError: `ready` was not called.
        """
        if self._distance is None:
            raise self._not_ready()
        return self._distance

    @property
    def distance_across(self) -> float:
        """See `Embedder.distance_across`: not measured, so the same."""
        return self.default_distance

    @property
    def meaning_share(self) -> float:
        """See `Embedder.meaning_share`: not measured, so that of the bundled model."""
        return MEANING_SHARE

    @property
    def unrelated_distance(self) -> float:
        """See `Embedder.unrelated_distance`: as far beyond the default distance as with the bundled model."""
        return self.default_distance * UNRELATED_DISTANCE / DEFAULT_DISTANCE

    async def ready(self) -> None:
        """See `Embedder.ready`: loads the model and measures its distance."""
        from engine.models.embedding.calibration import calibrated

        await self._model()
        async with self._measuring:
            if self._distance is None:
                self._distance = await calibrated(self)

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder.passages`: many short calls on the nice thread."""
        return await self._vectors(self._passages, "passage", texts)

    async def query(self, text: str) -> Vectors:
        """See `Embedder.query`: a thread of its own."""
        vectors = await self._vectors(self._queries, "query", [text])
        return vectors.reshape(-1)

    def reads(self, text: str) -> float:
        """See `Embedder.reads`. Before the model is loaded nobody knows: 1."""
        return self._loaded.reads(text) if self._loaded else 1.0

    async def close(self) -> None:
        """See `Embedder.close`: waits for the calls in progress, but for no model that is still loading."""
        self._closed = True
        if self._loading is not None:
            self._loading.cancel()
        for pool in (self._passages, self._queries):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def _vectors(self, pool: ThreadPoolExecutor, kind: str, texts: Sequence[str]) -> Vectors:
        from engine.models.embedding import counted, windows

        model = await self._model()
        pieces = [
            piece
            for number, text in enumerate(texts)
            for piece in await self._run(pool, model.pieces, number, text, kind)
        ]
        calls = counted.grouped(pieces, CALL_TOKENS, CALL_TEXTS)
        parts = []
        for call in calls:
            await QUESTIONS.give_way()
            parts.append(await self._run(pool, model.vectors, call, kind))
        ordered = [piece for call in calls for piece in call]
        return windows.pooled(ordered, parts, len(texts), model.dimension)

    async def _model(self) -> SentenceModel:
        """The model, loaded once however many ask; a failure is forgotten, so that it is tried again."""
        if self._closed:
            raise self._was_closed()
        if self._loaded is None:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.create_task(_load(self.model))
                self._loading.add_done_callback(_told)
            self._loaded = await self._unless_closed(asyncio.shield(self._loading))
        return self._loaded

    async def _run(
        self,
        pool: ThreadPoolExecutor,
        work: Callable[Given, Made],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> Made:
        if self._closed:
            raise self._was_closed()
        running = asyncio.wrap_future(pool.submit(work, *args, **kwargs))
        return await self._unless_closed(running)

    async def _unless_closed(self, made: Awaitable[Made]) -> Made:
        try:
            return await made
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and not (task and task.cancelling()):
                raise self._was_closed() from None  # nobody cancelled the caller: the threads are gone
            raise

    def _known(self) -> SentenceModel:
        if self._loaded is None:
            raise self._not_ready()
        return self._loaded

    def _not_ready(self) -> ModelError:
        return ModelError(f"The model {self.model} is not loaded yet.")

    def _was_closed(self) -> ModelError:
        return ModelError(f"The model {self.model} was closed.", remedy="Open the engine again.")


async def _load(name: str) -> SentenceModel:
    """The model, loaded by a thread the program's end does not wait for: a download can take minutes."""
    loading: Future[SentenceModel] = Future()
    loading.set_running_or_notify_cancel()
    threading.Thread(target=_load_into, args=(loading, name), name="st-load", daemon=True).start()
    return await asyncio.wrap_future(loading)


def _load_into(loading: Future[SentenceModel], name: str) -> None:
    from engine.models.embedding.sentence_model import load

    try:
        loading.set_result(load(name))
    except ModelError as error:
        loading.set_exception(error)
    finally:
        if not loading.done():  # an error of ours: the thread tells it, and nobody waits for ever
            loading.set_exception(ModelError(f"Loading the model {name} failed."))


def _told(loading: asyncio.Task[SentenceModel]) -> None:
    """Take note of a failure nobody waits for any more."""
    if not loading.cancelled():
        loading.exception()


def _be_nice() -> None:
    """Lower the priority of the calling thread. Only Linux gives threads a niceness of their own."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
