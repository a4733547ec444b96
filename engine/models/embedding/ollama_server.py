"""A server that speaks Ollama's protocol: what is asked of it, and what its faults mean to a user.

The library is imported where it is used: httpx under it loads its own command line, and with it a
terminal toolkit where one is installed, which no import of the engine may do.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar, cast

from engine.errors import ModelError
from engine.models.embedding.base import PullProgress
from engine.models.ollama_client import START, client, line
from engine.settings import mask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from typing import Any

    import ollama

T = TypeVar("T")

REACH_SECONDS = 15.0
"""For a question about the server or a model, which it answers from memory."""

ANSWER_SECONDS = 120.0
"""For vectors: the model may have to be loaded from a slow disk first."""

SILENCE_SECONDS = 600.0
"""For the next sign of life while a model is pulled: checking the sum of a large one is silent."""


class TooLongError(ModelError):
    """The text has more tokens than the model reads at once."""


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model the server has: its size in bytes and, of an embedding model, the length of its vectors.

    `embeds` says whether it is one, None when the server does not tell.
    """

    name: str
    size: int | None
    dimension: int | None
    embeds: bool | None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What the server tells of a model before it is loaded; None for what it does not."""

    dimension: int | None
    context: int | None
    embeds: bool | None


class OllamaServer:
    """One server. Connects when first asked, and again after every failure by itself."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: ollama.AsyncClient | None = None
        self._asking: set[asyncio.Task[Any]] = set()
        self._closed = False

    @property
    def name(self) -> str:
        """The server's address without its password."""
        return mask(self._url)

    async def models(self) -> Sequence[ollama.ListResponse.Model]:
        """The models the server has.

        Raises:
            ModelError: It does not answer as it should.
        """
        return (await self._ask(self._open().list(), REACH_SECONDS)).models

    async def card(self, model: str) -> ModelCard:
        """What the server tells of a model.

        Raises:
            ModelError: It does not answer as it should, or has no such model.
        """
        shown = await self._ask(self._open().show(model), REACH_SECONDS, model)
        info = shown.modelinfo or {}
        lengths = [_count(info, "context_length"), _parameter(shown.parameters, "num_ctx")]
        embeds = None if shown.capabilities is None else "embedding" in shown.capabilities
        dimension = _count(info, "embedding_length")
        return ModelCard(dimension, min((length for length in lengths if length), default=None), embeds)

    async def embed(self, model: str, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """The vectors of texts as the model gives them, in the same order; never of texts cut short.

        Raises:
            TooLongError: A text is too long for the model.
            ModelError: The server does not answer as it should, or has no such model.
        """
        asked = self._open().embed(model, texts, truncate=False)
        answer = await self._ask(asked, ANSWER_SECONDS, model)
        if len(answer.embeddings) != len(texts):
            counts = f"{len(answer.embeddings)} vectors for {len(texts)} texts"
            raise ModelError(f"{model} at {self.name} gave {counts}.", remedy="Update Ollama.")
        return answer.embeddings

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        """Have the server fetch a model; each sign of life it gives.

        Raises:
            ModelError: The server does not answer, or cannot get the model.
        """
        parts = await self._ask(self._open().pull(model, stream=True), REACH_SECONDS)
        async with aclosing(cast("AsyncGenerator[ollama.ProgressResponse, None]", parts)):
            while part := await self._ask(anext(parts, None), SILENCE_SECONDS, model, pulling=True):
                yield PullProgress(part.status or "", part.completed, part.total)

    async def close(self) -> None:
        """Close the connections; what is awaited still fails as closed. Closing twice is harmless."""
        self._closed = True
        for task in self._asking:
            task.cancel()
        client, self._client = self._client, None
        if client is not None:
            close: Callable[[], Awaitable[None]] = client.close  # the library leaves it untyped
            await close()

    def _open(self) -> ollama.AsyncClient:
        if self._closed:
            raise self._was_closed()
        if self._client is None:
            self._client = client(self._url)
        return self._client

    async def _ask(
        self, question: Awaitable[T], seconds: float, model: str = "", *, pulling: bool = False
    ) -> T:
        """The answer to a question. A task of its own, so that closing can end it.

        Raises:
            ModelError: There is none, or not the one it should be.
        """
        import httpx
        import ollama

        task = asyncio.create_task(_awaited(question))
        self._asking.add(task)
        try:
            async with asyncio.timeout(seconds):
                return await task
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._closed and not (caller and caller.cancelling()):
                raise self._was_closed() from None  # nobody cancelled the caller: the server was closed
            raise
        except ollama.ResponseError as error:
            raise self._refusal(error, model, pulling=pulling) from error
        except (OSError, httpx.RequestError) as error:
            raise self._silence(error, seconds) from error
        except (ValueError, TypeError, AttributeError) as error:
            # The client takes any JSON for granted, and stumbles over what it did not expect in it.
            raise self._nonsense() from error
        finally:
            self._asking.discard(task)

    def _silence(self, error: Exception, seconds: float) -> ModelError:
        """Why there was no answer at all."""
        import httpx

        if isinstance(error, TimeoutError):
            return ModelError(f"Ollama at {self.name} did not answer within {seconds:g} s.", remedy=START)
        if isinstance(error, ConnectionError | httpx.ConnectTimeout | httpx.ConnectError):
            return ModelError(f"Ollama does not answer at {self.name}.", remedy=START)
        return ModelError(f"Ollama at {self.name} broke off: {line(error)}.", remedy=START)

    def _nonsense(self) -> ModelError:
        return ModelError(
            f"What answers at {self.name} does not speak Ollama's protocol.",
            remedy="Set OLLAMA_URL to where Ollama listens, or update it.",
        )

    def _refusal(self, error: ollama.ResponseError, model: str, *, pulling: bool) -> ModelError:
        """What an error the server sent means."""
        reason = line(error.error)
        words = reason.lower()
        if pulling:
            remedy = "Look its name up at ollama.com/library."
            return ModelError(f"Ollama could not pull {model}: {reason}.", remedy=remedy)
        if ("exceed" in words and ("length" in words or "context" in words)) or _has_crashed(error):
            return TooLongError(f"A text is too long for {model}: {reason}.")
        if "not support embed" in words:
            return no_embedder(model)
        if error.status_code == HTTPStatus.NOT_FOUND:
            return missing(model) if model and "model" in words else self._nonsense()
        if error.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            remedy = "Put its user and password into OLLAMA_URL: http://user:password@host:port"
            return ModelError(f"Ollama at {self.name} wants a password.", remedy=remedy)
        doing = f"failed on {model}" if model else "failed"
        return ModelError(f"Ollama at {self.name} {doing}: {reason}.", remedy="Look into its log.")

    def _was_closed(self) -> ModelError:
        return ModelError(f"Ollama at {self.name} was closed.", remedy="Open the engine again.")


def missing(model: str) -> ModelError:
    """The server does not have the model."""
    return ModelError(f"Ollama has no model {model}.", remedy=f"Pull it: noctuary models pull {model}")


def no_embedder(model: str) -> ModelError:
    """The server has the model, and it makes no vectors."""
    remedy = "Set EMBEDDINGS_MODEL to one that is, or unset it."
    return ModelError(f"{model} is not an embedding model.", remedy=remedy)


async def pull(url: str, model: str) -> AsyncIterator[PullProgress]:
    """Have the Ollama at `url` fetch a model; each sign of life it gives, in order.

    Raises:
        ModelError: The server does not answer, or cannot get the model.
    """
    async with _opened(url) as server, aclosing(server.pull(model)) as parts:
        async for part in parts:
            yield part


async def installed(url: str) -> list[InstalledModel]:
    """The models the Ollama at `url` has, by name.

    Raises:
        ModelError: The server does not answer as it should.
    """
    async with _opened(url) as server:
        models = sorted((model.model or "", model.size) for model in await server.models())
        cards = await asyncio.gather(*(server.card(name) for name, _ in models))
    return [
        InstalledModel(name, size, None if card.embeds is False else card.dimension, card.embeds)
        for (name, size), card in zip(models, cards, strict=True)
    ]


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[OllamaServer]:
    server = OllamaServer(url)
    try:
        yield server
    finally:
        await server.close()


async def _awaited(answer: Awaitable[T]) -> T:
    """Any awaitable as a coroutine, which a task wants."""
    return await answer


def _count(info: Mapping[str, Any], field: str) -> int | None:
    """A length among the facts of a model, whose names begin with its architecture's."""
    found = [value for name, value in info.items() if name.endswith(f".{field}")]
    return next((value for value in found if isinstance(value, int) and value > 0), None)


def _parameter(parameters: str | None, name: str) -> int | None:
    """A number among the parameters the model was set up with, one a line."""
    lines = (line.split() for line in (parameters or "").splitlines())
    values = (line[1] for line in lines if len(line) > 1 and line[0] == name)
    return next((int(value) for value in values if value.isdecimal()), None)


def _has_crashed(error: ollama.ResponseError) -> bool:
    """Whether the model's process went down on what it was given. Ollama reports a text between its
    batch and its context size like that (ollama#16687), so that less of it at once may be read.
    """
    return error.status_code == HTTPStatus.INTERNAL_SERVER_ERROR and str(error.error).endswith("EOF")
