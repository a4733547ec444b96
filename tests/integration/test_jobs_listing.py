"""The Jobs pane's questions: pages, filters, counts and the rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.notes import jobs
from engine.notes.model import JobKind, JobStatus

if TYPE_CHECKING:
    from tests.integration.vault import Vault


@pytest.fixture
async def queue(vault: Vault) -> Vault:
    """One job done, one failed, one in hand, two waiting."""
    await vault.enqueue("one/done.md")
    (done,) = await vault.claim("w")
    await vault.enqueue("two/Failed [x].md")
    (failed,) = await vault.claim("w")
    async with vault.database.connection() as connection:
        await jobs.done(connection, "w", [done.id])
        await jobs.fail(connection, "w", failed.id, "Byte 7 (0xFF) cannot be decoded")
    await vault.enqueue("held.md")
    await vault.claim("w")
    await vault.enqueue("a.md", "b.md")
    return vault


async def test_a_page_is_newest_first_and_pages_do_not_overlap(queue: Vault) -> None:
    everything = await queue.notes.jobs()
    assert [job.id for job in everything] == sorted((job.id for job in everything), reverse=True)
    pages = [await queue.notes.jobs(limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [job for page in pages for job in page] == everything


async def test_a_filter_by_status_and_by_text_in_path_or_error_whatever_its_case(queue: Vault) -> None:
    assert {job.path for job in await queue.notes.jobs(status=JobStatus.PENDING)} == {"a.md", "b.md"}
    for text in ("failed [X]", "0xff", "TWO/"):
        assert [job.path for job in await queue.notes.jobs(text=text)] == ["two/Failed [x].md"]
    assert await queue.notes.jobs(text="failed", status=JobStatus.DONE) == []


@pytest.mark.parametrize("text", ["%", "_", "\\", "'; DROP TABLE job; --", "\0", "🐘"])
async def test_the_text_is_never_a_pattern_and_never_sql(queue: Vault, text: str) -> None:
    expected = 5 if text == "\0" else 0  # a NUL, which no row can hold, is left out
    assert len(await queue.notes.jobs(text=text)) == expected


async def test_a_job_tells_where_it_stands(queue: Vault) -> None:
    (job,) = await queue.notes.jobs(status=JobStatus.PROCESSING)
    assert (job.folder, job.path, job.kind) == (queue.root, "held.md", JobKind.INGEST_PATH)
    assert (job.worker, job.attempts, job.error, job.finished_at) == ("w", 1, None, None)
    assert job.started_at is not None
    assert job.started_at >= job.created_at


async def test_counts_by_status(queue: Vault) -> None:
    counts = await queue.notes.job_counts()
    assert (counts.pending, counts.processing, counts.done, counts.failed) == (2, 1, 1, 1)


async def test_the_rate_is_jobs_a_second_of_the_last_minute(vault: Vault) -> None:
    assert (await vault.notes.job_counts()).rate == 0
    await vault.enqueue(*(f"{number}.md" for number in range(20)))
    claimed = await vault.claim("w")
    async with vault.database.connection() as connection:
        await jobs.done(connection, "w", [job.id for job in claimed])
    assert (await vault.notes.job_counts()).rate == pytest.approx(20, rel=0.2)
    await vault.rows("UPDATE job SET started_at = now() - interval '10 s'")
    assert (await vault.notes.job_counts()).rate == pytest.approx(2, rel=0.1)
    await vault.rows("UPDATE job SET finished_at = now() - interval '61 s'")
    assert (await vault.notes.job_counts()).rate == 0


async def test_done_jobs_are_kept_a_week_and_failures_for_good(queue: Vault) -> None:
    await queue.rows("UPDATE job SET finished_at = now() - interval '8 days' WHERE finished_at IS NOT NULL")
    async with queue.database.connection() as connection:
        assert await jobs.prune(connection) == 1
    assert (await queue.notes.job_counts()).failed == 1
