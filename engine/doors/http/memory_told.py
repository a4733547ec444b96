"""What memory says, in the shapes of the HTTP door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doors.http import memory_shapes as shapes
from engine.memory.model import ClusterState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.memory.model import Distilled, Lesson, LessonDetail, Prepared, SynthesisBatch, SynthesisRun

MADE = frozenset({ClusterState.CREATED, ClusterState.STRENGTHENED})
"""States of a cluster of which a lesson came."""

LESSONS = "/lessons"


def prepared(turn: Prepared) -> shapes.Prepared:
    """A prepared turn."""
    return shapes.Prepared(
        messages=[shapes.Message.model_validate(message) for message in turn.messages],
        coherence=turn.coherence,
        lessons=[given.text for given in turn.recalled.lessons],
        sources=[shapes.Source.model_validate(source) for source in turn.recalled.sources],
        allowed=turn.allowed,
        reason=turn.reason,
        turn_token=turn.turn_token,
        contradiction=_contradiction(turn),
        notes=notes(turn.recalled.notes),
    )


def _contradiction(turn: Prepared) -> shapes.Contradiction | None:
    found = turn.contradiction
    return shapes.Contradiction.model_validate(found) if found else None


def notes(sentences: Sequence[str]) -> list[str]:
    """What limits a recall. Why a model made no vector is not for clients: it names what runs where."""
    return [
        f"{before}." if why else before for before, _, why in (each.partition(": ") for each in sentences)
    ]


def lesson(found: Lesson) -> shapes.Lesson:
    """A living lesson."""
    return shapes.Lesson(
        id=str(found.id),
        response_text=found.text,
        source_link=f"{LESSONS}/{found.id}/sources",
        created_at=found.created_at,
        created_by=found.created_by,
        edited_at=found.edited_at,
        expires_at=None if found.pinned else found.expires_at,
        last_used_at=found.last_used_at,
        uses=found.uses,
        reinforced=found.reinforced,
        pinned=found.pinned,
        sources=found.sources,
    )


def sources(detail: LessonDetail) -> shapes.LessonSources:
    """A lesson with the turns it came from."""
    turns = [shapes.SourceTurn.model_validate(turn) for turn in detail.sources]
    return shapes.LessonSources(lesson=lesson(detail.lesson), sources=turns)


def batch(handed: SynthesisBatch) -> shapes.Batch:
    """Clusters for the caller's model."""
    return shapes.Batch(
        synthesis_token=handed.token,
        system=handed.system,
        clusters=[shapes.ClusterPrompt.model_validate(cluster) for cluster in handed.clusters],
        packets_scanned=handed.packets_scanned,
    )


def learned(run: SynthesisRun) -> shapes.Learned:
    """A learning step that was just made."""
    return shapes.Learned.model_validate(_counts(run, run.tombstoned + run.nothing + run.failed))


def distilled(outcomes: Sequence[Distilled], run: SynthesisRun) -> shapes.Distilled:
    """What became of a batch."""
    told = [
        shapes.Outcome(
            cluster_id=each.cluster,
            state=each.state,
            lesson=None if each.lesson is None else str(each.lesson),
            note=each.note,
        )
        for each in outcomes
    ]
    skipped = sum(each.state not in MADE for each in outcomes)
    return shapes.Distilled.model_validate(_counts(run, skipped) | {"outcomes": told})


def _counts(run: SynthesisRun, skipped: int) -> dict[str, object]:
    idle = not (run.packets_scanned or run.created or run.strengthened or skipped)
    return {
        "status": "failed" if run.state == "failed" else "skipped" if idle else "completed",
        "lessons_created": run.created,
        "skipped": skipped,
        "packets_scanned": run.packets_scanned,
        "strengthened": run.strengthened,
        "tombstoned": run.tombstoned,
        "nothing": run.nothing,
        "failed": run.failed,
        "waiting": run.waiting,
    }
