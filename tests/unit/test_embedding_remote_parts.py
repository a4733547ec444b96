"""The parts of an embedder behind a network: spans of text, the pace of requests, the measured distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.models.embedding import calibration, pace, spans
from engine.models.embedding.bundled import DEFAULT_DISTANCE, BundledEmbedder
from engine.models.embedding.pace import Pace

PIECES = st.lists(st.sampled_from(["word ", "WORD", "7;", "é", "数据", "🐘", "\n"]), max_size=300).map(
    "".join
)


@given(PIECES, st.floats(2, 60))
def test_spans_cover_a_text_without_counting_anything_twice(text: str, tokens: float) -> None:
    found = spans.cut(0, text, tokens)
    position = 0
    for span in found:
        position += span.weight
        assert text[:position].endswith(span.body)
        assert span.cost <= tokens + 1e-6 or len(span.body) == 1 or span.weight == 1
        assert span.cost == pytest.approx(spans.costs(span.body).sum())
    assert position == len(text)


def test_neighbouring_spans_share_a_seam() -> None:
    first, second = spans.cut(0, "word " * 60, 80)
    assert first.body[-10:] in second.body
    assert second.weight < len(second.body)


@pytest.mark.parametrize(("text", "read"), [("", "."), ("\0 \n", "."), ("\ud800a", "?a"), ("a\0b", "a b")])
def test_what_no_server_takes_is_replaced(text: str, read: str) -> None:
    assert spans.readable(text) == read


def test_halves_keep_the_text_and_end() -> None:
    (span,) = spans.cut(3, "abcdefghij" * 4, 100)
    left, right = spans.halves(span)
    assert left.body + right.body == span.body
    assert (left.text, left.weight + right.weight) == (3, span.weight)
    assert spans.halves(left)
    assert not spans.halves(spans.halves(left)[0])


def test_a_request_is_bounded_in_every_way() -> None:
    quick = Pace()
    quick.tokens = pace.LARGEST
    assert len(quick.batch(spans.cut_all(["x"] * 500, 100))) == pace.MOST_TEXTS
    long = quick.batch(spans.cut_all(["word " * 400] * 100, 900))
    assert sum(len(span.body) for span in long) <= pace.MOST_CHARACTERS
    assert sum(span.cost for span in long) <= pace.LARGEST
    slow = Pace()
    slow.tokens = pace.SMALLEST
    assert len(slow.batch(spans.cut_all(["word " * 100] * 3, 500))) == 1


def test_requests_come_to_take_about_a_second() -> None:
    """On machines that read from 20 to 100,000 tokens a second."""
    for speed in (20, 300, 5_000, 100_000):
        learned = Pace()
        waiting = spans.cut_all(["word " * 10] * 2_000, 400)
        for _ in range(20):
            batch = learned.batch(waiting)
            seconds = sum(span.cost for span in batch) / speed
            learned.took(batch, seconds)
        assert seconds <= pace.SECONDS or learned.tokens == pace.SMALLEST
        assert seconds >= pace.SECONDS / 4 or len(batch) == pace.MOST_TEXTS


async def test_the_measured_distance_is_near_the_one_found_on_real_questions() -> None:
    """.79 where .78 was laid on knowman's questions and two corpora."""
    embedder = BundledEmbedder()
    found = await calibration.calibrated(embedder)
    await embedder.close()
    assert found == pytest.approx(DEFAULT_DISTANCE, abs=0.06)


def test_the_limit_lies_between_answers_and_strangers() -> None:
    count = len(calibration.PAIRS)
    questions = np.eye(count, dtype=np.float32)
    passages = 0.8 * np.eye(count, dtype=np.float32) + 0.3 * np.roll(
        np.eye(count, dtype=np.float32), 1, axis=0
    )
    assert calibration.limit(questions, passages) == pytest.approx((0.2 + 0.7) / 2, abs=0.01)


def test_the_pairs_are_all_different() -> None:
    assert len({*calibration.QUESTIONS, *calibration.PASSAGES}) == 2 * len(calibration.PAIRS)
