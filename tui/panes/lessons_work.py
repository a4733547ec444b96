"""What the Lessons pane asks of the engine, and how the answers are told. Nothing here touches a widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.errors import LessonError
from engine.memory.model import ClusterState, LessonState
from engine.text.amounts import count
from tui.panes.lessons_filter import clusters_of, parse, references
from tui.panes.lessons_text import View
from tui.panes.window_pane import LAST, WINDOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.memory.model import (
        Cluster,
        Distilled,
        Lesson,
        LessonCounts,
        LessonDetail,
        SourceTurn,
        SynthesisRun,
        SynthesisStep,
    )

HUMAN = "human"
"""Who acts at the keyboard, as the audit names him."""

ALL_AT_ONCE = 1_000_000
"""More lessons than any memory holds: for questions about every lesson that matches a filter."""

Order = Literal["newest", "expiring", "unused"]
ORDERS: tuple[Order, ...] = ("newest", "expiring", "unused")
ORDER_NAMES = {"newest": "newest first", "expiring": "first to expire first", "unused": "least used first"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for: a view, its filter and order, and where its window begins."""

    view: View
    text: str
    order: Order
    first: int

    @property
    def state(self) -> LessonState:
        """What the view shows, where the filter names nothing else."""
        return LessonState.DELETED if self.view is View.TOMBSTONES else LessonState.LIVING


@dataclass(frozen=True, slots=True)
class LessonsSnapshot:
    """A view at one moment: the window of its lessons, or its clusters, with the counts."""

    asked: Asked
    counts: LessonCounts
    total: int
    offset: int = 0
    lessons: tuple[Lesson, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    trouble: str = ""
    """What of the filter could not be read."""

    @property
    def more(self) -> bool:
        """Whether rows follow the window."""
        return self.offset + len(self.lessons) + len(self.clusters) < self.total


async def read(engine: Engine, asked: Asked) -> LessonsSnapshot:
    """A window of what is asked for."""
    memory, question = engine.memory, parse(asked.text, asked.state)
    counts = await memory.lessons.counts()
    if asked.view is View.WAITING:
        clusters = clusters_of(await memory.synthesis.waiting(ALL_AT_ONCE), question.where)
        return LessonsSnapshot(asked, counts, len(clusters), clusters=tuple(clusters[:WINDOW]))
    first = max(asked.first, 0)
    lessons, total = await memory.lessons.page(question.where, order=asked.order, offset=first, limit=WINDOW)
    wanted = max(total - WINDOW, 0) if asked.first == LAST else first if first < total else 0
    if wanted != first:  # the last window is wanted, or the list shrank under this one
        first = wanted
        lessons, total = await memory.lessons.page(
            question.where, order=asked.order, offset=first, limit=WINDOW
        )
    return LessonsSnapshot(asked, counts, total, first, tuple(lessons), trouble=question.trouble)


async def everything(engine: Engine, asked: Asked) -> dict[str, str]:
    """The keys of all lessons that match, each with what is copied of it."""
    where = parse(asked.text, asked.state).where
    lessons, _ = await engine.memory.lessons.page(where, order=asked.order, limit=ALL_AT_ONCE)
    return {each.reference: each.text for each in lessons}


@dataclass(frozen=True, slots=True)
class About:
    """Everything about one row: a lesson, or a cluster with its turns; or why it cannot be told."""

    key: str
    lesson: LessonDetail | None = None
    turns: tuple[SourceTurn, ...] = ()
    why: str = ""


async def about(engine: Engine, key: str) -> About:
    """Read what there is to say about the row of this key."""
    if key.startswith("C"):
        turns = await engine.memory.synthesis.cluster_sources(number(key))
        return About(key, turns=tuple(turns))
    return About(key, await engine.memory.lessons.detail(number(key)))


def number(key: str) -> int:
    """The id in `L12` or `C7`."""
    return int(key[1:])


async def delete_named(engine: Engine, typed: str) -> list[int]:
    """Delete the lessons that a typed line names; what follows their names is the reason."""
    ids, reason = references(typed)
    if not ids:
        raise LessonError("Name a lesson by its reference.", remedy="As L12, or L12 L15 and then why.")
    deleted = await engine.memory.lessons.delete(ids, actor=HUMAN, reason=reason)
    if not deleted:
        raise LessonError("There is no living lesson of that reference: nothing was deleted.")
    return deleted


def named(ids: Sequence[int]) -> str:
    """`L12`, `L12 and L15`, `12 lessons`."""
    names = [f"L{each}" for each in ids]
    return " and ".join(names) if len(names) < 3 else count(len(names), "lesson")


def step_line(step: SynthesisStep) -> str:
    """How far a synthesis is."""
    brain = f"{step.core}/{step.user}" if step.user else step.core
    done = f"{step.done:,} of {count(step.total, 'cluster')}" if step.total else ""
    return " · ".join(part for part in (brain, step.text, done) if part)


def outcome_line(runs: Sequence[SynthesisRun]) -> str:
    """What all brains' runs came to, and why what waits does."""
    if not runs:
        return "Nothing was said since the last run, and nothing waits."
    sums = {
        "learned": sum(run.created for run in runs),
        "strengthened": sum(run.strengthened for run in runs),
        "held back by tombstones": sum(run.tombstoned for run in runs),
        "held nothing": sum(run.nothing for run in runs),
        "failed": sum(run.failed for run in runs),
    }
    waiting = sum(run.waiting for run in runs)
    parts = [f"{number:,} {what}" for what, number in sums.items() if number or what == "learned"]
    if waiting:
        parts.append(f"{count(waiting, 'cluster')} {'waits' if waiting == 1 else 'wait'}")
    notes = dict.fromkeys(note for run in runs for note in (*run.notes, run.error) if note)
    return " · ".join([*parts, *notes])


def distilled_line(outcome: Distilled) -> str:
    """What became of a cluster."""
    if outcome.state is ClusterState.CREATED:
        return f"L{outcome.lesson} is learned"
    if outcome.state is ClusterState.STRENGTHENED:
        return f"L{outcome.lesson} says the same: it was strengthened"
    if outcome.state is ClusterState.TOMBSTONED:
        return f"Not learned. {outcome.note} Lift its tombstone first."
    return "Nothing durable in it: it waits no more"
