"""Coherence as its formula says: the mean similarity of what was recalled, weighted by how far it is believed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.coherence import coherence, support
from engine.memory.model import Kind, Source


def test_it_is_a_mean_weighted_by_confidence() -> None:
    assert coherence([(0.8, 0.5), (0.2, 0.15)]) == pytest.approx((0.8 * 0.5 + 0.2 * 0.15) / 0.65)
    assert coherence([(0.6, 0.7)]) == pytest.approx(0.6)
    assert coherence([(-0.4, 0.5), (0.4, 0.5)]) == pytest.approx(0.2), (
        "what points the other way is no support"
    )


def test_to_know_nothing_is_not_to_know_otherwise() -> None:
    assert coherence([]) is None
    assert coherence([(0.0, 0.5)]) == 0


@pytest.mark.parametrize(("distance", "expected"), [(0.25, 0.75), (None, 0.4), (1.5, -0.5)])
def test_a_source_supports_by_its_cosine_or_without_a_vector_by_its_relevance(
    distance: float | None, expected: float
) -> None:
    source = Source(1, "x", "", 0.4, 0.5, 0.2, Kind.RAW, datetime.now(UTC), distance=distance)
    assert support([source]) == [(pytest.approx(expected), 0.5)]


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0.01, 1)), min_size=1))
def test_it_lies_between_0_and_1_and_within_what_it_is_the_mean_of(pairs: list[tuple[float, float]]) -> None:
    found = coherence(pairs)
    assert found is not None
    values = [max(0.0, similarity) for similarity, _ in pairs]
    assert min(values) - 1e-9 <= found <= max(values) + 1e-9
