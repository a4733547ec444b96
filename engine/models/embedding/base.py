"""What the notes ask of any model that turns text into vectors, and how the chosen one is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engine.settings import Settings

    Vectors = NDArray[np.float32]

BUNDLED, OLLAMA, SENTENCE_TRANSFORMERS, MULTILINGUAL = (
    "bundled",
    "ollama",
    "sentence-transformers",
    "multilingual",
)

PROVIDERS = (BUNDLED, OLLAMA, SENTENCE_TRANSFORMERS, MULTILINGUAL)
"""What EMBEDDINGS_PROVIDER may be."""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """How far a pull is: what the server is at, and bytes of the file it is at (None: no file)."""

    status: str
    completed: int | None
    total: int | None


class Embedder(Protocol):
    """A model of text meaning. Vectors of different `model_id` are never compared."""

    @property
    def provider(self) -> str:
        """Who runs the model: one of `PROVIDERS`."""

    @property
    def model(self) -> str:
        """The model as EMBEDDINGS_MODEL names it."""

    @property
    def model_id(self) -> str:
        """Names the model, its version and its arithmetic: another id means all vectors are made anew.

        Raises:
            ModelError: `ready` was not called, and only the model itself knows.
        """

    @property
    def dimension(self) -> int:
        """Length of each vector.

        Raises:
            ModelError: `ready` was not called, and only the model itself knows.
        """

    @property
    def token_limit(self) -> int:
        """Tokens the model reads at once; longer text is read in windows and pooled, never cut."""

    @property
    def default_distance(self) -> float:
        """Cosine distance beyond which a passage is no evidence, unless the user sets another.

        Raises:
            ModelError: `ready` was not called, and the distance has to be measured first.
        """

    @property
    def distance_across(self) -> float:
        """The same where question and passage are in different scripts: a model of many languages reads
        both, and puts them less near to each other. Not below `default_distance`.

        Raises:
            ModelError: as `default_distance`.
        """

    @property
    def unrelated_distance(self) -> float:
        """Cosine distance of texts that have nothing to do with each other: nearness is counted down to it.

        Raises:
            ModelError: as `default_distance`.
        """

    @property
    def meaning_share(self) -> float:
        """What meaning counts in a search beside words (0..1), where the model reads the query: the better it
        reads, the more.
        """

    async def ready(self) -> None:
        """Load or reach the model, so that all that is told of it is known. Cheap once it succeeded.

        Raises:
            ModelError: The model cannot be loaded or reached; it may be tried again.
        """

    async def passages(self, texts: Sequence[str]) -> Vectors:
        """Vectors of passages, one row a text in the same order, each of length 1.

        Cancelling the awaiting task stops the work between two calls of the model.

        Raises:
            ModelError: The model cannot be loaded or fails.
        """

    async def query(self, text: str) -> Vectors:
        """Vector of a question, of length 1. It does not wait for passages being embedded.

        Raises:
            ModelError: The model cannot be loaded or fails.
        """

    def reads(self, text: str) -> float:
        """How far the model reads the text's language: 0 (not at all) to 1 (as its own).

        It weighs the vector list in a search, so that a model which cannot read a question does
        not spoil what its words find. Cheap: it may be called on the event loop.
        """

    async def close(self) -> None:
        """Stop the threads; what is awaited still is cancelled. Closing twice is harmless."""


def open_embedder(settings: Settings) -> Embedder:
    """The embedder the settings name. It costs nothing: the model is loaded when first used.

    Raises:
        SettingsError: The provider is unknown, or does not have the model.
    """
    return embedder_of(settings.embeddings_provider, settings.embeddings_model, settings)


def embedder_of(
    provider: str,
    model: str | None,
    settings: Settings,
    distances: MutableMapping[str, float] | None = None,
) -> Embedder:
    """The embedder of a provider for a model of its (None: the provider's own default).

    `distances` holds measured default distances by `model_id`: what is in it is not measured again, and
    what is measured is put into it.

    Raises:
        SettingsError: The provider is unknown, or does not have the model.
    """
    if provider == BUNDLED:
        return _bundled(model)
    if provider == OLLAMA:
        from engine.models.embedding.ollama import OllamaEmbedder

        return OllamaEmbedder(settings.ollama_url, model, distances=distances)
    if provider == SENTENCE_TRANSFORMERS:
        from engine.models.embedding.sentence_transformers import SentenceTransformersEmbedder

        return SentenceTransformersEmbedder(model)
    if provider == MULTILINGUAL:
        from engine.models.embedding.multilingual import MODEL_NAME, MultilingualEmbedder

        _only(provider, model, MODEL_NAME)
        return MultilingualEmbedder()
    raise SettingsError(
        f"EMBEDDINGS_PROVIDER, or the command, names {provider!r}, not a provider of embedding models.",
        remedy=f"Name one of: {', '.join(PROVIDERS)}.",
    )


def _bundled(model: str | None) -> Embedder:
    from engine.models.embedding.bundled import MODEL_NAME, BundledEmbedder

    _only(BUNDLED, model, MODEL_NAME)
    return BundledEmbedder()


def _only(provider: str, model: str | None, known: str) -> None:
    """Refuse a model that the provider does not have."""
    if model is not None and model.casefold() != known.casefold():
        raise SettingsError(
            f"EMBEDDINGS_MODEL is {model!r}, but the {provider} embedder is {known!r}.",
            remedy="Remove the setting.",
        )
