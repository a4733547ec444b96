"""What the engine says, in the shapes of the HTTP door."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.doors.commands.status import SILENT_SECONDS
from engine.doors.http import shapes
from engine.doors.output import plain
from engine.notes.model import BY_WORDS
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.notes.answered import Answer
    from engine.notes.evaluated import EvalRun
    from engine.notes.model import Citation, DriftReport, Freshness, Job, NotesStatus, WatchState
    from engine.notes.traced import Trace

FAILED = "It failed; on the server, `noctuary jobs --status failed` shows why."
UNANSWERED = "The language model gave no answer; the server's log tells why."


def citation(found: Citation, freshness: Freshness) -> shapes.Citation:
    """A citation, checked against the disk."""
    return shapes.Citation(
        path=spelt(found.path),
        line_start=found.line_start,
        line_end=found.line_end,
        text=found.text,
        distance=found.distance,
        score=found.score,
        heading=list(found.heading),
        folder=spelt(str(found.folder)),
        copies=found.copies,
        freshness=str(freshness),
    )


def notes(sentences: Sequence[str]) -> list[str]:
    """What limits a search. Why a model made no vector is not for clients: it names what runs where."""
    return [f"{BY_WORDS}." if each.startswith(BY_WORDS) else each for each in sentences]


def answer(given: Answer, citations: list[shapes.Citation]) -> shapes.Answered:
    """What an ask came to."""
    return shapes.Answered(
        citations=citations,
        notes=notes(given.notes),
        answer=given.text,
        outcome=given.outcome.value,
        unsupported=list(given.unsupported),
        trouble=UNANSWERED if given.trouble else None,
    )


def evaluated(run: EvalRun) -> shapes.Evaluated:
    """A run that was just made."""
    return shapes.Evaluated.model_validate({"delta": run.delta, "failing": list(run.failing), **_score(run)})


def run(stored: EvalRun) -> shapes.Run:
    """A stored run."""
    return shapes.Run.model_validate({"id": stored.id, "created_at": stored.at, **_score(stored)})


def job(row: Job) -> shapes.Job:
    """A job. Its error names paths and what the system said: it is shown at the machine."""
    return shapes.Job(
        id=row.id,
        type=row.kind.value,
        status=row.status.value,
        updated_at=row.finished_at or row.started_at or row.created_at,
        error=FAILED if row.error else None,
        path=spelt(row.path),
    )


def trace(made: Trace) -> shapes.Trace:
    """A search or an ask that was made; it has a number and a time once it is stored."""
    if made.id is None or made.at is None:
        raise ValueError("a trace that is not stored")
    return shapes.Trace(
        id=made.id,
        created_at=made.at,
        query=spelt(made.query),
        citation_count=made.citations,
        answered=made.answered,
        latency_ms=round(made.seconds * 1000, 1),
        kind=made.kind.value,
        door=made.door,
    )


def status(found: NotesStatus, report: DriftReport, *, on_disk: int, model: str) -> shapes.Status:
    """The state of things; `model` where the index knows none."""
    embedding = found.embedding
    return shapes.Status(
        files_on_disk=on_disk,
        files_indexed=found.index.files if found.index else 0,
        chunks=found.index.chunks if found.index else 0,
        embeddings_model=embedding.model if embedding else model,
        jobs=shapes.Jobs(
            pending=found.jobs.pending,
            processing=found.jobs.processing,
            failed=found.jobs.failed,
            done=found.jobs.done,
            rate=round(found.jobs.rate, 2),
        ),
        drift=_drift(report),
        vectors=shapes.Vectors(
            embedded=embedding.embedded, pending=embedding.pending, failed=embedding.failed
        )
        if embedding
        else None,
        watchers=[_watcher(each) for each in found.watchers],
        services_down=[fault.service for fault in found.faults],
    )


def files(rows: Sequence[object]) -> bytes:
    """The files as JSON. There may be a hundred thousand: made by hand, for a thread."""
    return json.dumps([plain(row) for row in rows]).encode()


def _watcher(state: WatchState) -> shapes.Watcher:
    silent = (datetime.now(UTC) - state.beat).total_seconds() if state.beat else math.inf
    return shapes.Watcher(
        folder=spelt(str(state.folder)),
        mode=str(state.holder or state.mode),
        beat=state.beat,
        watched=silent <= SILENT_SECONDS,
    )


def _drift(report: DriftReport) -> shapes.Drift:
    counts = {cause.value: number for cause, number in report.counts().items()}
    return shapes.Drift(at=report.at, folders_away=len(report.problems), **counts)


def _score(run: EvalRun) -> dict[str, object]:
    return {
        "groundedness": run.groundedness,
        "total": run.total,
        "correct": run.correct,
        "answered_count": None,
        "recall": run.recall,
        "mrr": run.mrr,
        "dataset": spelt(run.dataset),
        "model": run.model,
        "k": run.k,
    }
