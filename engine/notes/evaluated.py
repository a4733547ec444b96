"""The nouns of eval: a run over labelled questions, kept so that the next can be compared with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from engine.notes.labelled import Question as Question  # noqa: PLC0414 - for doors and screens


@dataclass(frozen=True, slots=True)
class EvalAnswer:
    """How one question was answered. `cited` are the citations as `path:Lstart-Lend`, best first; `rank` is
    the 1-based place of the first that was wanted.
    """

    id: str
    question: str
    correct: bool
    rank: int | None
    cited: tuple[str, ...]
    expected: str
    """Where the answer stands, in words."""


@dataclass(frozen=True, slots=True)
class EvalRun:
    """One run. Groundedness is correct / total; `delta` is against the last stored run of the same dataset
    (0 when there is none), in the same unit (0..1). `recall` and `mrr` are None where no place is wanted.
    """

    id: int
    at: datetime
    dataset: str
    model: str
    k: int
    total: int
    correct: int
    recall: float | None
    mrr: float | None
    seconds: float
    delta: float = 0.0
    answers: tuple[EvalAnswer, ...] = ()
    other_questions: bool = False
    """Whether the file was another when it was run before: the delta compares two lists of questions."""

    @property
    def groundedness(self) -> float:
        """The share of the questions that were answered rightly."""
        return self.correct / self.total

    @property
    def failing(self) -> tuple[str, ...]:
        """The ids of the questions that were not."""
        return tuple(each.id for each in self.answers if not each.correct)

    @property
    def line(self) -> str:
        """The run in knowman's line."""
        return (
            f"groundedness: {self.groundedness:.2%} ({self.correct}/{self.total}), delta: {self.delta:+.2%}"
        )


@dataclass(frozen=True, slots=True)
class EvalStep:
    """How far a run is."""

    done: int
    total: int
