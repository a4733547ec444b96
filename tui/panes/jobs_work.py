"""What the Jobs pane asks the engine about more rows than it shows. Nothing here touches a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.notes.model import JobId, JobStatus, PassageId
from tui.panes.jobs_text import VECTORS, Choice, job_subject, known, passage_key, passage_subject

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.notes.model import JobCounts

ALL_AT_ONCE = 1_000_000
"""More jobs than any queue holds: for questions about every job that matches a filter."""


async def everything(engine: Engine, status: Choice, text: str) -> dict[str, str]:
    """The keys of all rows that match, each with what is copied of it."""
    if status == VECTORS:
        passages = await engine.notes.failed_passages(text=text, limit=ALL_AT_ONCE)
        return {passage_key(each): passage_subject(each) for each in passages}
    jobs = await engine.notes.jobs(status=status, text=text, limit=ALL_AT_ONCE)
    return {str(job.id): job_subject(job) for job in jobs}


async def retry_rows(engine: Engine, keys: Sequence[str]) -> int:
    """Retry marked rows: jobs, and passages, whose keys begin with a letter."""
    jobs = [JobId(int(key)) for key in keys if key.isdigit()]
    passages = [PassageId(int(key[1:])) for key in keys if not key.isdigit()]
    return await engine.notes.retry(jobs) + await engine.notes.retry_passages(passages)


async def retry_matching(engine: Engine, status: Choice, text: str) -> int:
    """Retry what failed: passages where they are shown, else jobs, without a filter both."""
    if status == VECTORS:
        passages = await engine.notes.failed_passages(text=text, limit=ALL_AT_ONCE)
        return await engine.notes.retry_passages([each.id for each in passages])
    if not text:
        return await engine.notes.retry()
    failed = await engine.notes.jobs(status=JobStatus.FAILED, text=text, limit=ALL_AT_ONCE)
    return await engine.notes.retry([job.id for job in failed])


async def matching(engine: Engine, counts: JobCounts, status: JobStatus | None, text: str) -> int:
    """How many jobs match; with a text only reading them tells."""
    if not text:
        return known(counts, status)
    return len(await engine.notes.jobs(status=status, text=text, limit=ALL_AT_ONCE))
