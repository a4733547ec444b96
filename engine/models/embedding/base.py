"""What the notes ask of any model that turns text into vectors, and how the chosen one is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engine.settings import Settings

    Vectors = NDArray[np.float32]

BUNDLED = "bundled"


class Embedder(Protocol):
    """A model of text meaning. Vectors of different `model_id` are never compared."""

    @property
    def model_id(self) -> str:
        """Names the model and its arithmetic: another id means all vectors are made anew."""

    @property
    def dimension(self) -> int:
        """Length of each vector."""

    @property
    def token_limit(self) -> int:
        """Tokens the model reads at once; longer text is read in windows and pooled, never cut."""

    @property
    def default_distance(self) -> float:
        """Cosine distance beyond which a passage is no evidence, unless the user sets another."""

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
        SettingsError: The provider is unknown, or the bundled one is asked for another model.
    """
    if settings.embeddings_provider != BUNDLED:
        raise SettingsError(
            f"EMBEDDINGS_PROVIDER is {settings.embeddings_provider!r}, which is not an embedder here.",
            remedy=f"Set it to {BUNDLED!r}.",
        )
    from engine.models.embedding.bundled import MODEL_NAME, BundledEmbedder

    if settings.embeddings_model not in {None, MODEL_NAME}:
        raise SettingsError(
            f"EMBEDDINGS_MODEL is {settings.embeddings_model!r}, but the bundled embedder is {MODEL_NAME!r}.",
            remedy="Remove the setting.",
        )
    return BundledEmbedder()
