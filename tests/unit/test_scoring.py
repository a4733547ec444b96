"""The numbers of a comparison are those of their sources, bounded, and fair to what ties."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.notes.compared import KEYWORDS, Compared, Comparison
from engine.notes.labelled import Expect, Lines, Question
from engine.notes.model import Citation
from engine.notes.scoring import (
    DEPTH,
    Judged,
    chance,
    judged,
    ndcg,
    percentile,
    recall,
    reciprocal_rank,
    score,
)

ranks = st.lists(st.none() | st.integers(1, 30), min_size=1, max_size=40)


def cited(path: str, first: int = 1, last: int = 2) -> Citation:
    return Citation(Path("/notes"), path, first, last, "text", 0.1, 1.0)


OWLS = Question("owls", "when do owls hunt", Expect.CITATION, "owls")


def test_a_question_is_judged_by_the_first_citation_that_is_wanted() -> None:
    found = [cited("larks.md"), cited("owls.md"), cited("more/owls.md"), cited("swifts.md")]
    assert judged(OWLS, found, 3, 0.25) == Judged(
        "owls",
        3,
        wanted=True,
        right=True,
        rank=2,
        seconds=0.25,
        cited=("larks.md:L1-L2", "owls.md:L1-L2", "more/owls.md:L1-L2"),
    )


def test_what_stands_behind_the_first_k_is_ranked_and_not_right() -> None:
    found = judged(OWLS, [cited("larks.md"), cited("owls.md")], 1, 0)
    assert (found.right, found.rank, found.cited) == (False, 2, ("larks.md:L1-L2",))
    assert judged(OWLS, [cited("larks.md"), cited("owls.md")], 2, 0).right
    lined = Question("l", "q", Expect.CITATION, lines=Lines("owls.md", 3, 4))
    assert judged(lined, [cited("owls.md", 1, 2), cited("owls.md", 4, 9)], 2, 0).rank == 2


def test_where_nothing_is_wanted_only_nothing_is_right() -> None:
    question = Question("n", "who won", Expect.NEGATIVE)
    assert judged(question, [], 3, 0).right
    assert not judged(question, [cited("larks.md")], 3, 0).right
    assert not judged(OWLS, [], 3, 0).right


def answered(rank: int | None, *, k: int = 3, wanted: bool = True, seconds: float = 0.1) -> Judged:
    right = (rank is not None and rank <= k) if wanted else rank is None
    return Judged(f"q{rank}{wanted}", k, wanted, right, rank, (), seconds)


def test_a_score_by_hand() -> None:
    answers = [
        answered(1),
        answered(4),
        answered(None),
        answered(2, seconds=0.3),
        answered(None, wanted=False),
    ]
    found = score(answers)
    assert (found.questions, found.right, found.groundedness) == (5, 3, 0.6)
    assert found.recall == 0.5
    assert found.mrr == pytest.approx((1 + 1 / 4 + 1 / 2) / 4)
    assert found.ndcg == pytest.approx((1 + 1 / math.log2(5) + 1 / math.log2(3)) / 4)
    assert found.failing == ("q4True", "qNoneTrue")
    assert (found.median_ms, found.p95_ms) == (100.0, 300.0)


def test_without_a_wanted_place_there_is_no_recall() -> None:
    found = score([answered(None, wanted=False)])
    assert (found.right, found.recall, found.mrr, found.ndcg) == (1, None, None, None)


@given(ranks, st.integers(1, 30))
def test_recall_grows_with_k_and_counts(found: list[int | None], k: int) -> None:
    shares = [recall(found, [most] * len(found)) or 0.0 for most in (k, k + 1, 30)]
    assert 0 <= shares[0] <= shares[1] <= shares[2] <= 1
    assert shares[0] * len(found) == pytest.approx(sum(each is not None and each <= k for each in found))


@given(ranks)
def test_every_measure_is_a_share_and_their_order_is_fixed(found: list[int | None]) -> None:
    """1/rank is never above 1/log2(1 + rank), nor that above being found at all."""
    mrr, gain, hits = reciprocal_rank(found), ndcg(found, 30), recall(found, [30] * len(found))
    assert mrr is not None
    assert gain is not None
    assert hits is not None
    assert 0 <= mrr <= gain + 1e-9 <= hits + 2e-9 <= 1 + 2e-9


@given(ranks, st.data())
def test_an_answer_that_rises_makes_no_measure_worse(found: list[int | None], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(found) - 1))
    rank = found[place]
    better = list(found)
    better[place] = 1 if rank is None else max(1, rank - 1)
    for measure in (reciprocal_rank, ndcg, lambda each: recall(each, [3] * len(each))):
        before, after = measure(found), measure(better)
        assert before is not None
        assert after is not None
        assert after >= before - 1e-12


def test_what_stands_below_the_depth_gains_nothing() -> None:
    assert ndcg([DEPTH]) == pytest.approx(1 / math.log2(DEPTH + 1))
    assert ndcg([DEPTH + 1]) == 0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_percentile_is_the_least_value_that_so_many_do_not_exceed(
    values: list[float], share: float
) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(each <= found for each in values) >= share * len(values) - 1e-9
    assert sum(each < found for each in values) < share * len(values)


def test_the_sign_test_by_hand() -> None:
    assert chance(0, 0) == 1
    assert chance(1, 0) == 1
    assert chance(5, 0) == pytest.approx(2 / 32)
    assert chance(8, 2) == pytest.approx(2 * (1 + 10 + 45) / 1024)
    assert chance(4_000, 3_000) < 1e-30


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_does_not_care_who_is_first(gained: int, lost: int) -> None:
    assert 0 < chance(gained, lost) == chance(lost, gained) <= 1
    assert chance(gained + 1, 0) <= chance(gained, 0)


IDS = ("a", "b", "c", "d")


def row(name: str, right: str, rank: int = 1, seconds: float = 0.1, **more: Any) -> Compared:
    answers = tuple(
        Judged(each, 3, wanted=True, right=each in right, rank=rank, cited=(), seconds=seconds)
        for each in IDS
    )
    return Compared(name, score=score(answers), answers=answers, **more)


def compared(*rows: Compared) -> Comparison:
    questions = tuple(Question(each, each, Expect.CITATION, "x") for each in IDS)
    return Comparison(questions, (3,) * len(IDS), rows)


def test_the_best_is_right_most_often_then_ranks_higher_then_is_in_use_or_quicker() -> None:
    assert compared(row("one", "ab"), row("two", "abc", rank=3)).best.name == "two"
    assert compared(row("one", "ab", rank=2), row("two", "cd")).best.name == "two"
    assert compared(row("one", "ab"), row("two", "cd", seconds=0.05)).best.name == "two"
    assert compared(row("one", "ab"), row("two", "cd")).best.name == "one"
    assert compared(row("one", "ab", in_use=True), row("two", "cd", seconds=0.05)).best.name == "one"
    assert compared(Compared("gone", left_out="no"), row(KEYWORDS, "")).best.name == KEYWORDS


def test_the_best_is_held_against_the_model_in_use_else_against_the_next() -> None:
    found = compared(row("one", "abd"), row("two", "abcd", rank=3), row("three", "a", in_use=True)).verdict()
    assert found is not None
    assert (found.best.name, found.other.name) == ("two", "three")
    assert (found.gained, found.lost, found.chance) == (("b", "c", "d"), (), 0.25)
    found = compared(row("one", "ab", in_use=True), row("two", "c"), row(KEYWORDS, "")).verdict()
    assert found is not None
    assert (found.best.name, found.other.name) == ("one", "two")
    assert (found.gained, found.lost) == (("a", "b"), ("c",))
    assert compared(row(KEYWORDS, "a")).verdict() is None


def test_what_only_some_answer_is_told_by_who_does() -> None:
    found = compared(row("one", "abd"), row("two", "bd"), Compared("gone", left_out="no"), row(KEYWORDS, "b"))
    assert found.disputed() == [(("one",), ("a",)), (("one", "two"), ("d",))]
    assert found.unanswered() == ("c",)
