"""How jobs are told: totals, a row, a line, and everything about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from textual.content import Content

from engine.notes.model import FailedPassage, Job, JobCounts, JobStatus
from tui.ages import ago, clock
from tui.text import content, line
from tui.widgets.row_list import Row

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

VECTORS: Final = "vectors"
"""Stands among the statuses for the passages the model could not embed."""

Choice = JobStatus | Literal["vectors"] | None

STATUSES: tuple[JobStatus | None, ...] = (
    None,
    JobStatus.PENDING,
    JobStatus.PROCESSING,
    JobStatus.FAILED,
    JobStatus.DONE,
)
SLOWEST = 0.5
"""Jobs a second below which a rate is no help."""

SIGNS = {
    JobStatus.PENDING: ("○ pending", "muted"),
    JobStatus.PROCESSING: ("◐ working", "warning"),
    JobStatus.DONE: ("✓ done", "good"),
    JobStatus.FAILED: ("✗ failed", "error"),
}
"""How a status is shown: sign, word and tone, so that no colour is needed to tell them apart."""


def totals_line(counts: JobCounts, status: Choice, vectors: int = 0) -> Content:
    """Counts by status, the one that is shown in brackets, and the rate."""
    parts: list[tuple[str, str]] = []
    for each in STATUSES:
        text = f"{'all' if each is None else SIGNS[each][0]} {known(counts, each):,}"
        parts.append((f"[{text}]", "bold") if each is status else (f" {text} ", ""))
    if vectors or status == VECTORS:
        text = f"✗ {VECTORS} {vectors:,}"
        parts.append((f"[{text}]", "bold") if status == VECTORS else (f" {text} ", ""))
    # The rate of the last minute says nothing once the queue is empty, and nobody would take it away.
    busy = counts.pending + counts.processing > 0
    rate = f"  {max(counts.rate, 1):,.0f} jobs/s" if busy and counts.rate >= SLOWEST else ""
    return Content.assemble(*parts, (rate, "dim"))


def job_row(job: Job, *, now_age: str, many_folders: bool) -> Row:
    """A job as a row of the table."""
    sign, tone = SIGNS[job.status]
    path = f"{job.folder.name}/{job.path}" if many_folders else job.path
    kind = str(job.kind).removesuffix("_path")
    tries = str(job.attempts) if job.attempts else ""
    cells = (
        str(job.id),
        sign,
        kind,
        tries,
        now_age,
        path,
        short_error(job.error or "", job.folder / job.path),
    )
    return Row(str(job.id), cells, ("muted", tone, "", "", "muted", "", "error"))


def passage_row(passage: FailedPassage, *, many_folders: bool) -> Row:
    """A passage without a vector as a row of the table."""
    place = passage.reference
    path = f"{passage.folder.name}/{place}" if many_folders else place
    cells = (str(passage.id), SIGNS[JobStatus.FAILED][0], "vector", "", "", path, passage.error)
    return Row(passage_key(passage), cells, ("muted", "error", "", "", "muted", "", "error"))


def job_subject(job: Job) -> str:
    """What is copied of a job: its file."""
    return str(job.folder / job.path)


def passage_subject(passage: FailedPassage) -> str:
    """What is copied of a passage: its lines."""
    return str(passage.folder / passage.reference)


def passage_key(passage: FailedPassage) -> str:
    """The key of its row: no job has such a one."""
    return f"v{passage.id}"


def passage_detail(passage: FailedPassage) -> Content:
    """Everything about a passage the model could not embed."""
    facts = [
        ("file", str(passage.folder / passage.path)),
        ("lines", f"{passage.line_start}-{passage.line_end}"),
    ]
    lines = [Content.assemble((f"{name:<9}", "dim"), line(value)) for name, value in facts]
    return Content("\n").join([*lines, Content(""), content("✗ " + passage.error, "$text-error")])


def short_error(error: str, file: Path) -> str:
    """The error without the file's path before it: a row says that already, and the reason must be seen."""
    return error.removeprefix(f"{file}: ")


def since(job: Job) -> datetime:
    """The moment of the last thing that happened to a job."""
    return job.finished_at or job.started_at or job.created_at


def story(job: Job, now: datetime) -> str:
    """What happened to a job, in one line."""
    parts = [f"queued {ago(job.created_at, now)}"]
    if job.started_at is not None:
        parts.append(f"started {ago(job.started_at, now)}" + (f" by {job.worker}" if job.worker else ""))
    if job.finished_at is not None:
        parts.append(f"finished {ago(job.finished_at, now)}")
    return " · ".join(parts)


def detail(job: Job, now: datetime) -> Content:
    """Everything about a job."""
    times = [("queued", job.created_at), ("started", job.started_at), ("finished", job.finished_at)]
    facts = [
        ("file", str(job.folder / job.path)),
        ("kind", str(job.kind)),
        ("status", SIGNS[job.status][0]),
        ("attempts", str(job.attempts)),
        *((name, f"{clock(then, now)} ({ago(then, now)})") for name, then in times if then is not None),
        ("worker", job.worker or ""),
    ]
    lines = [Content.assemble((f"{name:<9}", "dim"), line(value)) for name, value in facts if value]
    if job.error:
        lines += [Content(""), content("✗ " + job.error, "$text-error")]
    return Content("\n").join(lines)


def known(counts: JobCounts, status: JobStatus | None) -> int:
    """Jobs of one status, or of all."""
    if status is None:
        return counts.pending + counts.processing + counts.done + counts.failed
    return int(getattr(counts, status))
