"""Several workers on one queue: each job is done once, and what a killed worker held comes back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.notes import worker
from engine.notes.model import JobStatus
from engine.notes.worker import Worker
from tests.integration.other_engine import OtherEngine
from tests.support import eventually

if TYPE_CHECKING:
    from tests.integration.vault import Vault


async def test_two_workers_share_500_jobs_and_do_each_exactly_once(vault: Vault) -> None:
    for number in range(500):
        vault.write(f"{number % 20}/{number}.md", f"# Note {number}\n\nword{number} and common words\n")
    assert await vault.notes.index_all() == 500
    workers = [Worker(vault.database, lease=60, models=tuple) for _ in range(2)]
    await asyncio.gather(*(worker.run_until_idle() for worker in workers))
    done = await vault.jobs(JobStatus.DONE)
    assert len(done) == len({job.path for job in done}) == 500
    assert {job.attempts for job in done} == {1}
    assert {job.worker for job in done} == {worker.name for worker in workers}
    assert await vault.in_index() == vault.on_disk()
    assert await vault.value("SELECT count(*) FROM chunk") == 500


async def test_a_worker_killed_in_the_middle_leaves_nothing_half_written_and_its_jobs_come_back(
    vault: Vault, environment: dict[str, str]
) -> None:
    for number in range(1500):
        text = "\n\n".join(f"## Part {part}\n\nword{number} part{part}" for part in range(8))
        vault.write(f"{number}.md", text)
    await vault.notes.index_all()
    lease = {"DATABASE_URL": vault.settings.database_url or "", "NOCTUARY_LEASE_SECONDS": "0.7"}
    other = await OtherEngine.start({**environment, **lease}, "work")

    async def in_the_middle() -> bool:
        counts = await vault.notes.job_counts()
        return counts.done > 0 and counts.processing > 0

    await eventually(in_the_middle)
    await other.kill()
    held = await vault.jobs(JobStatus.PROCESSING)
    assert held, "it was killed with jobs in its hands"
    counts = await vault.notes.job_counts()
    assert await vault.value("SELECT count(*) FROM file") == counts.done, (
        "a file is in the index when it is done"
    )

    await vault.notes.work_until_idle(embed=False)
    assert await vault.in_index() == vault.on_disk()
    assert {job.status for job in await vault.jobs()} == {JobStatus.DONE}
    returned = {job.id: job.attempts for job in await vault.jobs()}
    assert {returned[job.id] for job in held} == {2}
    await vault.check()


async def test_a_worker_that_is_stopped_gives_back_what_it_holds(vault: Vault) -> None:
    for number in range(600):
        vault.write(f"{number}.md", f"word{number}\n" * 200)
    await vault.notes.index_all()
    worker = Worker(vault.database, lease=60, models=tuple)
    running = asyncio.create_task(worker.run())
    await eventually(lambda: vault.jobs(JobStatus.PROCESSING))
    running.cancel()
    await asyncio.wait({running})
    left = [job for job in await vault.jobs() if job.status is not JobStatus.DONE]
    assert {(job.status, job.attempts) for job in left} == {(JobStatus.PENDING, 0)}


async def test_a_claim_that_was_cancelled_in_flight_is_given_back_too(vault: Vault) -> None:
    await vault.enqueue("a.md")
    worker = Worker(vault.database, lease=60, models=tuple)
    await vault.claim(worker.name)  # it reached the database, and its answer nobody
    await worker._give_back()
    (job,) = await vault.jobs()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 0)


async def test_an_idle_worker_looks_again_when_somebodys_lease_ends_or_a_delay_is_over(vault: Vault) -> None:
    idle = Worker(vault.database, lease=60, models=tuple)
    assert await idle._pause() == worker.IDLE_WAIT >= 30
    await vault.enqueue("a.md")
    await vault.claim("killed", lease=5)
    assert 3 < await idle._pause() <= 5
    await vault.enqueue("b.md", delay=1.0)
    assert 0 < await idle._pause() <= 1
    await vault.rows("UPDATE job SET not_before = now() - interval '1 minute' WHERE status = 'pending'")
    assert await idle._pause() > 3, "it is in somebody's hands, whose end wakes us"
