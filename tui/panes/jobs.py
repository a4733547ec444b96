"""Jobs: the queue, the embedding backlog, and every error in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from engine.notes.model import FailedPassage, Job, JobCounts, JobStatus
from engine.text.amounts import count
from tui.ages import age
from tui.keymap import bindings
from tui.panes.jobs_text import (
    STATUSES,
    VECTORS,
    Choice,
    detail,
    job_row,
    job_subject,
    known,
    passage_detail,
    passage_key,
    passage_row,
    passage_subject,
    since,
    story,
    totals_line,
)
from tui.panes.jobs_work import everything, matching, retry_matching, retry_rows
from tui.panes.window_pane import LAST, WINDOW, WindowPane
from tui.screens.dialog import Confirm, TextDialog
from tui.text import all_of, content, line
from tui.widgets.label import Label
from tui.widgets.progress import embedding_line
from tui.widgets.row_list import Column, Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.content import Content

    from engine import Engine


@dataclass(frozen=True, slots=True)
class JobsSnapshot:
    """A window of the queue with the counts of the same moment. `more`: rows follow the window."""

    counts: JobCounts
    jobs: tuple[Job, ...]
    status: Choice
    text: str
    offset: int
    more: bool
    passages: tuple[FailedPassage, ...] = ()
    vectors: int = 0


class JobsPane(WindowPane[JobsSnapshot]):
    """The queue."""

    number = 3
    title = "Jobs"
    scope = "jobs"
    topics = frozenset({"job", "embedding"})
    hints = ("jobs.retry", "jobs.status", "list.filter", "jobs.detail", "list.mark")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("jobs")]
    columns = (
        Column("Id", 7, right=True),
        Column("Status", 9),
        Column("Kind", 6),
        Column("Tries", 5, right=True),
        Column("Age", 4, right=True),
        Column("Path", path=True, share=3),
        Column("Error", share=2, from_width=100),
    )

    def __init__(self) -> None:
        super().__init__()
        self._totals = Label(classes="totals")
        self._embedding = Label(classes="embedding")
        self.status: Choice = None

    def above(self) -> ComposeResult:
        """Counts and the embedding backlog."""
        yield self._totals
        yield self._embedding

    def arrive(self, kind: str) -> None:
        """The inbox sends to what failed."""
        if kind == "failed_jobs":
            self.status, self.filter_text, self.first, self.dirty = JobStatus.FAILED, "", 0, True
        elif kind == "failed_vectors":
            self.status, self.filter_text, self.first, self.dirty = VECTORS, "", 0, True

    # Reading ---------------------------------------------------------------------------------

    async def fetch(self, engine: Engine) -> JobsSnapshot:
        """A window of jobs, and the counts."""
        status, text, offset = self.status, self.filter_text, self.first
        counts = await engine.notes.job_counts()
        vectors = await engine.notes.failed_passage_count()
        if status == VECTORS:
            passages = tuple(await engine.notes.failed_passages(text=text, limit=WINDOW))
            return JobsSnapshot(
                counts, (), status, text, offset=0, more=False, passages=passages, vectors=vectors
            )
        if offset == LAST:
            offset = max(await matching(engine, counts, status, text) - WINDOW, 0)
        jobs = await engine.notes.jobs(status=status, text=text, limit=WINDOW + 1, offset=offset)
        if not jobs and offset:  # the queue shrank under the window
            offset = 0
            jobs = await engine.notes.jobs(status=status, text=text, limit=WINDOW + 1)
        window, more = tuple(jobs[:WINDOW]), len(jobs) > WINDOW
        return JobsSnapshot(counts, window, status, text, offset, more, vectors=vectors)

    def show(self, snapshot: JobsSnapshot) -> None:
        """Counts, backlog and rows."""
        self._totals.put(totals_line(snapshot.counts, snapshot.status, snapshot.vectors))
        super().show(snapshot)

    def status_read(self) -> None:
        """The embedding backlog is part of the status."""
        status = self.host.status
        progress = status.embedding if status is not None else None
        self._embedding.put(embedding_line(progress, self._embedding.size.width))

    def on_resize(self) -> None:
        """The names of models take the room there is."""
        self.status_read()

    def rows(self, snapshot: JobsSnapshot) -> Sequence[Row]:
        """One row a job, or a passage without a vector."""
        if snapshot.status == VECTORS:
            several = len({each.folder for each in snapshot.passages}) > 1
            return [passage_row(each, many_folders=several) for each in snapshot.passages]
        now = self.host.now()
        many = len({job.folder for job in snapshot.jobs}) > 1
        return [job_row(job, now_age=age(since(job), now), many_folders=many) for job in snapshot.jobs]

    def summary(self, snapshot: JobsSnapshot) -> Content:
        """Which rows are shown."""
        if snapshot.status == VECTORS:
            shown = count(len(snapshot.passages), "passage")
            of = f" of {snapshot.vectors:,}" if snapshot.vectors > len(snapshot.passages) else ""
            return line(f"{shown}{of} without a vector: found by words alone{self.marked()}", "dim")
        first, last = snapshot.offset + 1, snapshot.offset + len(snapshot.jobs)
        total = _total(snapshot)
        of = f" of {total:,}" if total is not None else " of more" if snapshot.more else ""
        shown = count(last, "job") if self.whole(snapshot) else f"jobs {first:,}-{last:,}{of}"
        text = f" · with “{snapshot.text}”" if snapshot.text else ""
        return line(f"{shown}{text}{self.marked()}", "dim")

    def nothing(self) -> str:
        """No jobs."""
        if self.status == VECTORS:
            return "The model could embed every passage it was given."
        return f"No {self.status} jobs." if self.status else "No jobs yet: they appear when notes change."

    # The window ------------------------------------------------------------------------------

    def window(self, snapshot: JobsSnapshot) -> tuple[int, bool]:
        """Where it stands."""
        return snapshot.offset, snapshot.more

    def whole(self, snapshot: JobsSnapshot) -> bool:
        """Of passages without a vector only the first are read."""
        return super().whole(snapshot) and len(snapshot.passages) < WINDOW

    async def everything(self, engine: Engine) -> Mapping[str, str]:
        """All jobs, or passages, that match."""
        return await everything(engine, self.status, self.filter_text)

    # Rows ------------------------------------------------------------------------------------

    def _job(self, row: Row | None) -> Job | None:
        jobs = self.snapshot.jobs if self.snapshot is not None else ()
        return next((job for job in jobs if row is not None and str(job.id) == row.key), None)

    def _passage(self, row: Row | None) -> FailedPassage | None:
        passages = self.snapshot.passages if self.snapshot is not None else ()
        return next((each for each in passages if row is not None and passage_key(each) == row.key), None)

    def describe(self, row: Row) -> Content | None:
        """The error in full, or when what happened."""
        passage = self._passage(row)
        if passage is not None:
            return content("✗ " + passage.error, "$text-error")
        job = self._job(row)
        if job is None:
            return None
        if job.error:
            return content("✗ " + job.error, "$text-error")
        return line(story(job, self.host.now()), "dim")

    def subject(self, row: Row) -> str:
        """The job's path, or the passage's lines."""
        passage = self._passage(row)
        if passage is not None:
            return passage_subject(passage)
        job = self._job(row)
        return job_subject(job) if job is not None else row.key

    def file(self, row: Row) -> Path | None:
        """The job's or passage's file."""
        job = self._job(row) or self._passage(row)
        return job.folder / job.path if job is not None else None

    def unavailable(self, action: str) -> str:
        """Why a key does nothing now."""
        if action == "jobs.detail" and self.list.current is None:
            return "There is no job here"
        if action == "jobs.retry" and self.snapshot is None:
            return "The jobs were not read yet"
        if (
            action == "jobs.retry"
            and self.snapshot
            and not len(self.marks)
            and not self.snapshot.counts.failed
            and not self.snapshot.vectors
        ):
            return "No job has failed: there is nothing to retry"
        return super().unavailable(action)

    def do_status(self) -> None:
        """Show the jobs of the next status; after the last the passages without a vector, if any."""
        vectors = self.snapshot is not None and self.snapshot.vectors
        choices: tuple[Choice, ...] = (*STATUSES, VECTORS) if vectors else STATUSES
        here = choices.index(self.status) if self.status in choices else -1
        self.status = choices[(here + 1) % len(choices)]
        self.filter_changed()

    def do_detail(self) -> None:
        """Everything about the job."""
        job, passage = self._job(self.list.current), self._passage(self.list.current)
        if passage is not None:
            self.app.push_screen(TextDialog("Passage without a vector", passage_detail(passage)))
        if job is not None:
            self.app.push_screen(TextDialog(f"Job {job.id}", detail(job, self.host.now())))

    # Retry -----------------------------------------------------------------------------------

    def do_retry(self) -> None:
        """Retry the marked jobs; without marks all failed ones that match the filter, after a yes."""
        if len(self.marks):
            self._retry(tuple(self.marks))
            return
        what = self._all_failed()
        self.app.push_screen(
            Confirm(f"Retry {what}?", "jobs.retry", detail="Mark rows to retry only those."), self._retry_all
        )

    def _all_failed(self) -> str:
        """What a retry without marks takes, in words."""
        counts = self.snapshot.counts if self.snapshot is not None else JobCounts()
        vectors = self.snapshot.vectors if self.snapshot is not None else 0
        if self.filter_text:
            kind = "passages without a vector" if self.status == VECTORS else "failed jobs"
            return f"the {kind} with “{self.filter_text}”"
        if self.status == VECTORS or not counts.failed:
            return f"{all_of(vectors, 'passage')} without a vector"
        passages = f" and {count(vectors, 'passage')} without a vector" if vectors else ""
        return all_of(counts.failed, "failed job") + passages

    def _retry_all(self, confirmed: bool | None) -> None:
        if confirmed:
            self._retry(None)

    def _retry(self, keys: Sequence[str] | None) -> None:
        """Retry the rows of these keys; None: all that match the filter, of the kind that is shown."""
        text, status = self.filter_text, self.status

        async def work(engine: Engine) -> int:
            if keys is not None:
                return await retry_rows(engine, keys)
            return await retry_matching(engine, status, text)

        def said(queued: int) -> str:
            self.marks.forget(keys or ())
            self.changed()
            if not queued:
                return "Nothing to retry: those jobs did not fail, or their paths are queued already"
            return f"{count(queued, 'passage' if status == VECTORS else 'job')} queued again"

        self.command(work, "retry", said)


def _total(snapshot: JobsSnapshot) -> int | None:
    """Jobs that match, when it is known without asking: the counts know nothing of a text."""
    if not snapshot.more:
        return snapshot.offset + len(snapshot.jobs)
    if snapshot.text or snapshot.status == VECTORS:
        return None
    return known(snapshot.counts, snapshot.status)
