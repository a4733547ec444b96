"""How well searches answered labelled questions: pure numbers, no model judging another.

One place is wanted by a question, however many passages of it answer. So the first citation that is wanted
decides, at its 1-based `rank`; None: none of those looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.notes.labelled import Question
    from engine.notes.model import Citation

DEPTH = 10
"""Citations looked at for a rank, where a question's k does not ask for more."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How a question was answered. `right`: a wanted citation among the first k, or none of any where none
    is wanted. `cited` are the first k as `path:Lstart-Lend`; `wanted` says whether one was.
    """

    id: str
    k: int
    wanted: bool
    right: bool
    rank: int | None
    cited: tuple[str, ...]
    seconds: float


def judged(question: Question, citations: Sequence[Citation], k: int, seconds: float) -> Judged:
    """A question judged by the citations it got, best first, of which the first `k` are shown."""
    ranks = (
        rank
        for rank, each in enumerate(citations, 1)
        if question.wants(each.path, each.line_start, each.line_end)
    )
    rank = next(ranks, None)
    wanted = question.place_wanted
    right = rank is not None and rank <= k if wanted else not citations
    cited = tuple(each.reference for each in citations[:k])
    return Judged(question.id, k, wanted, right, rank, cited, seconds)


@dataclass(frozen=True, slots=True)
class Score:
    """All of it in numbers: `right` of `questions`; the others, where a place is wanted, are None when none
    is. `failing` are the ids that were not answered rightly; times are milliseconds a question.
    """

    questions: int
    right: int
    recall: float | None
    mrr: float | None
    ndcg: float | None
    failing: tuple[str, ...]
    median_ms: float
    p95_ms: float

    @property
    def groundedness(self) -> float:
        """The share that is right, negatives included, as knowman's eval reports it."""
        return self.right / self.questions


def score(answers: Sequence[Judged]) -> Score:
    """The score of at least one answered question."""
    from statistics import median  # every screen imports this module, and that one takes its time

    wanted = [each for each in answers if each.wanted]
    ranks = [each.rank for each in wanted]
    times = [each.seconds * 1000 for each in answers]
    return Score(
        questions=len(answers),
        right=sum(each.right for each in answers),
        recall=recall(ranks, [each.k for each in wanted]),
        mrr=reciprocal_rank(ranks),
        ndcg=ndcg(ranks),
        failing=tuple(each.id for each in answers if not each.right),
        median_ms=median(times),
        p95_ms=percentile(times, 0.95),
    )


def recall(ranks: Sequence[int | None], k: Sequence[int]) -> float | None:
    """recall@k: the share of what is wanted that is among the first k, each question with its own k.

    With one wanted place a question it is 0 or 1 for each (also called success or hit rate at k), and this is
    the mean: Manning, Raghavan and Schütze, Introduction to Information Retrieval (2008), 8.3.
    """
    return _mean([float(rank is not None and rank <= most) for rank, most in zip(ranks, k, strict=True)])


def reciprocal_rank(ranks: Sequence[int | None]) -> float | None:
    """MRR: the mean of 1/rank, 0 where nothing was found: Voorhees, The TREC-8 Question Answering Track
    Report (1999).
    """
    return _mean([1 / rank if rank else 0.0 for rank in ranks])


def ndcg(ranks: Sequence[int | None], depth: int = DEPTH) -> float | None:
    """nDCG@depth, with the gain 1 for the one wanted place and none for anything else.

    The discount is 1/log2(1 + rank): Burges et al., Learning to Rank using Gradient Descent (2005), after
    Järvelin and Kekäläinen (2002). The ideal list has the place first, which gives 1: no norm is left.
    """
    return _mean([1 / math.log2(1 + rank) if rank and rank <= depth else 0.0 for rank in ranks])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile: the smallest of the values, one at least, that `share` (0..1) of them do
    not exceed.
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def chance(gained: int, lost: int) -> float:
    """How probable it is (0..1) that two equally good systems differ by so much or more: one was right in
    `gained` questions where the other was not, and the other way round in `lost`.

    The exact sign test on the questions they differ in, two-sided: McNemar (1947), with the binomial itself.
    """
    differing = gained + lost
    tail = sum(math.comb(differing, count) for count in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / (1 << differing))
