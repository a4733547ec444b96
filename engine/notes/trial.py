"""A model tried on a few notes: does it work, how fast is it, and does it tell an owl from a train?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.notes.model import ModelTrial

if TYPE_CHECKING:
    from engine.models.embedding.base import Embedder

SAMPLE = (
    "The boiler was serviced in March; the next service is due in a year.",
    "Sourdough needs a day: feed it in the morning, bake it in the evening.",
    "The train to the coast leaves at seven from the second platform.",
    "Owls hunt at night and sleep in hollow trees by day.",
)
"""Short notes; the last one answers."""

QUESTION = "When do owls hunt?"


async def trial(embedder: Embedder) -> ModelTrial:
    """What the model does with a question and a few notes.

    Raises:
        ModelError: it cannot be loaded or reached, or makes no vectors.
    """
    start = time.perf_counter()
    await embedder.ready()
    await embedder.query(QUESTION)
    ready = time.perf_counter()
    question = await embedder.query(QUESTION)
    asked = time.perf_counter()
    passages = await embedder.passages(SAMPLE)
    made = time.perf_counter()
    *others, answer = (1 - passages @ question).tolist()
    return ModelTrial(
        provider=embedder.provider,
        model=embedder.model_id,
        dimension=embedder.dimension,
        ready_seconds=ready - start,
        query_ms=(asked - ready) * 1000,
        passages_per_second=len(SAMPLE) / (made - asked),
        answer_distance=answer,
        other_distance=min(others),
        default_distance=embedder.default_distance,
    )
