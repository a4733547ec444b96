"""What comes out when models are compared: a row each, the best of them, and where they differ.

Pure values; `engine.notes.comparing` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.notes.scoring import chance

if TYPE_CHECKING:
    from engine.notes.labelled import Question
    from engine.notes.scoring import Judged, Score

KEYWORDS = "keywords alone"
"""The row of the search that asks no model."""


@dataclass(frozen=True, slots=True)
class CompareStep:
    """How far a comparison is: with making a model's vectors (`embedding`), or with asking it the questions.

    `seconds_left` is None while that is unknown.
    """

    name: str
    embedding: bool
    done: int
    total: int
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """A model, or keywords alone, as it answered. `left_out` says why it was not measured.

    `embedded` of `passages` have its vector; `caution` says what that means for the measurement. `in_use`: it
    answers searches now. `score` and `answers` are those of the usual search by words and meaning together,
    `meaning` and `meaning_answers` by meaning alone.
    """

    name: str
    provider: str = ""
    model: str = ""
    embedded: int = 0
    passages: int = 0
    in_use: bool = False
    left_out: str = ""
    caution: str = ""
    score: Score | None = None
    meaning: Score | None = None
    answers: tuple[Judged, ...] = ()
    meaning_answers: tuple[Judged, ...] = ()

    @property
    def right(self) -> frozenset[str]:
        """The ids of the questions that it answers rightly."""
        return frozenset(each.id for each in self.answers if each.right)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The best row against another: ids that it alone answers (`gained`) or the other alone (`lost`), and how
    probable (0..1) such a difference is between equally good ones.
    """

    best: Compared
    other: Compared
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    chance: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """All rows, in the order they were compared, keywords alone last. `absent` are the ids of questions whose
    place is in no indexed note, so that nothing can answer them. `distance` is what the settings give as the
    largest distance for every model; None: each has its own.
    """

    questions: tuple[Question, ...]
    k: tuple[int, ...]
    """How many citations each question may need."""
    rows: tuple[Compared, ...]
    absent: tuple[str, ...] = ()
    distance: float | None = None

    @property
    def measured(self) -> tuple[Compared, ...]:
        """The rows that were measured."""
        return tuple(row for row in self.rows if row.score is not None)

    @property
    def best(self) -> Compared:
        """The row that is right most often; then by recall, and by how high the answers stand. Of equal ones
        that in use, which needs no change, then the quickest.
        """
        return max(self.measured, key=_merit)

    def verdict(self) -> Verdict | None:
        """The best against the model in use, or the next best where it is that itself; None: it is alone."""
        best = self.best
        others = sorted((row for row in self.measured if row is not best), key=_merit, reverse=True)
        other = next((row for row in others if row.in_use), others[0] if others else None)
        if other is None:
            return None
        gained, lost = self._ids(best.right - other.right), self._ids(other.right - best.right)
        return Verdict(best, other, gained, lost, chance(len(gained), len(lost)))

    def disputed(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Questions that only some answer: (names of those, ids), in the order of the questions."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for question in self.questions:
            names = self._answering(question.id)
            if 0 < len(names) < len(self.measured):
                groups.setdefault(names, []).append(question.id)
        return [(names, tuple(ids)) for names, ids in groups.items()]

    def unanswered(self) -> tuple[str, ...]:
        """The ids of the questions that none answers."""
        return tuple(question.id for question in self.questions if not self._answering(question.id))

    def _answering(self, question: str) -> tuple[str, ...]:
        return tuple(row.name for row in self.measured if question in row.right)

    def _ids(self, ids: frozenset[str]) -> tuple[str, ...]:
        return tuple(question.id for question in self.questions if question.id in ids)


def _merit(row: Compared) -> tuple[float, ...]:
    score = row.score
    if score is None:
        return ()
    return (score.right, score.recall or 0.0, score.mrr or 0.0, row.in_use, -score.median_ms)
