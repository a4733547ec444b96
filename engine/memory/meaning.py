"""Meaning: the vectors of questions, lessons and packets, from whichever model answers now.

The models are those of the process; memory keeps its own vectors of them, one of each model a row, and
computes every distance within a brain: a brain is small, and an index walk through a filter is neither
complete nor quicker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from engine.errors import ModelError
from engine.models.embedding.courtesy import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.models.embedding.base import Embedder, Vectors


class Served(Protocol):
    """A model as the index knows it."""

    @property
    def id(self) -> int:
        """Its id in the table `model`."""

    @property
    def dimension(self) -> int:
        """Length of its vectors."""

    @property
    def name(self) -> str:
        """What the index calls the version its vectors are of."""

    @property
    def embedder(self) -> Embedder:
        """What makes its vectors."""

    async def query(self, text: str) -> Vectors:
        """A question's vector in the space of the index's own.

        Raises:
            ModelError: the model does not answer, or is not that version any more.
        """


class Models(Protocol):
    """The models of this process, as the notes keep them."""

    @property
    def making(self) -> Served | None:
        """The one that makes vectors; None while it is not known to the database."""

    def answering(self) -> Sequence[Served]:
        """Those to ask for a question's vector, until one gives it."""

    def absence(self) -> ModelError:
        """Why there is none to ask."""


@dataclass(frozen=True, slots=True)
class Meant:
    """What a text means to a model, which reads it so far (0..1)."""

    vector: Vectors
    model: Served
    reads: float


class Meaning:
    """Asks the models for what texts mean."""

    def __init__(self, models: Models) -> None:
        self._models = models

    async def of(self, text: str) -> tuple[Meant | None, str]:
        """What a text means, or None with the sentence that says why that is not known."""
        fault: ModelError | None = None
        with QUESTIONS.asked():
            for served in self._models.answering():
                try:
                    vector = await served.query(text)
                except ModelError as error:
                    fault = fault or error
                else:
                    return Meant(vector, served, served.embedder.reads(text)), ""
        return None, str(fault or self._models.absence())

    async def passage(self, text: str) -> Meant | None:
        """What a text that is kept means, to be compared with questions; None while no model answers: it gets
        its vector in the background then.
        """
        for served in self._models.answering():
            try:
                await served.embedder.ready()
                if served.embedder.model_id != served.name:
                    continue
                vectors = await served.embedder.passages([text])
            except ModelError:
                continue
            return Meant(vectors[0], served, 1.0)
        return None

    def models(self) -> list[Served]:
        """The models of which what is kept shall get vectors."""
        candidates = [*self._models.answering(), self._models.making]
        return list({each.id: each for each in candidates if each is not None}.values())
