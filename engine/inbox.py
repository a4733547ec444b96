"""Everything that waits for a human, counted, with the oldest age."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.notes.model import DriftCause

if TYPE_CHECKING:
    from datetime import datetime

    from engine.database import Database
    from engine.memory.lessons import Lessons
    from engine.notes import Notes
    from engine.notes.evaluation import Evaluation

_FAILED_JOBS = "SELECT count(*), min(finished_at) FROM job WHERE status = 'failed'"


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A kind of thing that waits. `pane` names where it is dealt with; `oldest` is in UTC."""

    kind: str
    title: str
    count: int
    oldest: datetime | None
    pane: str


class Inbox:
    """What needs a person, gathered from all parts of the engine."""

    def __init__(
        self,
        database: Database,
        notes: Notes,
        evaluation: Evaluation | None = None,
        lessons: Lessons | None = None,
    ) -> None:
        self._database = database
        self._notes = notes
        self._evaluation = evaluation
        self._lessons = lessons

    async def items(self) -> list[InboxItem]:
        """What waits, the most first; nothing that waits means an empty list."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(_FAILED_JOBS)
            failed, oldest = await cursor.fetchone() or (0, None)
        vectors = await self._notes.failed_passage_count()
        found = [
            InboxItem("failed_jobs", "Notes that could not be indexed", failed, oldest, "jobs"),
            InboxItem("failed_vectors", "Passages the model could not read", vectors, None, "jobs"),
            *self._faults(),
            *self._drift(),
            *await self._eval(),
            *await self._learned(),
        ]
        return sorted((item for item in found if item.count), key=lambda item: -item.count)

    def _faults(self) -> list[InboxItem]:
        """What of this process does not work: each fault by itself, with its reason."""
        items = [
            InboxItem(
                f"service {fault.service}",
                f"Background service down ({fault.service}): {fault.reason}",
                1,
                fault.since,
                "log",
            )
            for fault in self._notes.faults()
        ]
        trouble = self._notes.model_trouble
        if trouble and not any(trouble.startswith(fault.reason) for fault in self._notes.faults()):
            items.append(InboxItem("model", f"The model makes no vectors: {trouble}", 1, None, "log"))
        return items

    async def _eval(self) -> list[InboxItem]:
        """What the last eval found wrong."""
        runs = await self._evaluation.history(1) if self._evaluation is not None else []
        return [
            InboxItem(
                "eval",
                f"Labelled questions that fail ({run.groundedness:.2%}, {run.delta:+.2%})",
                run.total - run.correct,
                run.at,
                "eval",
            )
            for run in runs
        ]

    async def _learned(self) -> list[InboxItem]:
        """What was learned and not looked at, what goes unless it is kept, and what nobody distilled."""
        if self._lessons is None:
            return []
        counts = await self._lessons.counts()
        return [
            InboxItem(
                "lessons_new",
                "Lessons learned since your last visit",
                counts.new,
                counts.oldest_new,
                "lessons",
            ),
            InboxItem(
                "lessons_expiring", "Lessons that expire within a week", counts.expiring, None, "lessons"
            ),
            InboxItem(
                "clusters_waiting",
                "Clusters of turns that wait to be distilled",
                counts.waiting,
                counts.oldest_waiting,
                "lessons",
            ),
        ]

    def _drift(self) -> list[InboxItem]:
        report = self._notes.last_drift
        if report is None:
            return []
        titles = {
            DriftCause.NOT_INDEXED: "Notes not in the index",
            DriftCause.ORPHANED: "Notes in the index and not on the disk",
            DriftCause.CHANGED: "Notes written since they were indexed",
            DriftCause.OTHER_MODEL: "Notes embedded by another model",
        }
        items = []
        for cause, title in titles.items():
            rows = [row for row in report.rows if row.cause is cause and not row.queued]
            since = [row.since for row in rows if row.since is not None]
            items.append(InboxItem(str(cause), title, len(rows), min(since, default=None), "drift"))
        items.append(
            InboxItem(
                "folders", "Folders that cannot be trusted now", len(report.problems), report.at, "drift"
            )
        )
        return items
