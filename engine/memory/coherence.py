"""Coherence: how well what memory knows supports a turn or an answer, as one number from 0 to 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.memory.model import Source


def coherence(support: Iterable[tuple[float, float]]) -> float | None:
    """The mean similarity of what was recalled, weighted by how far each is believed:

        coherence = Σ confidence · similarity / Σ confidence

    `support` has (similarity, confidence) of each source, similarity as cosine in -1..1; what points
    the other way counts as 0. None where nothing was recalled: to know nothing is not to know otherwise.
    """
    pairs = [(min(1.0, max(0.0, similarity)), confidence) for similarity, confidence in support]
    total = sum(confidence for _, confidence in pairs)
    if total <= 0:
        return None
    return sum(similarity * confidence for similarity, confidence in pairs) / total


def support(sources: Iterable[Source]) -> list[tuple[float, float]]:
    """What `coherence` takes of sources: the cosine, or, of one without a vector yet, its relevance."""
    return [
        (source.similarity if source.distance is None else 1 - source.distance, source.confidence)
        for source in sources
    ]
