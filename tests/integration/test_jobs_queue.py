"""The queue's promises: coalescing, order, one holder a path, leases, and what becomes of failures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.notes import jobs
from engine.notes.model import JobKind, JobStatus
from tests.support import eventually

if TYPE_CHECKING:
    from tests.integration.vault import Vault


async def test_a_burst_on_one_path_is_one_waiting_job(vault: Vault) -> None:
    for _ in range(5):
        await vault.enqueue("a.md")
    await vault.enqueue("b.md", "a.md")
    waiting = await vault.jobs(JobStatus.PENDING)
    assert sorted(job.path for job in waiting) == ["a.md", "b.md"]


async def test_a_coalesced_job_takes_the_newest_time_and_the_earliest_start(vault: Vault) -> None:
    async with vault.database.transaction() as connection:
        for priority, delay in ((5, 60.0), (9, 0.0), (7, 60.0)):
            wanted = [jobs.Wanted(JobKind.DELETE_PATH if delay else JobKind.INGEST_PATH, "a.md", priority)]
            await jobs.enqueue(connection, vault.folder.id, wanted, delay=delay)
    (claimed,) = await vault.claim()
    assert (claimed.priority, claimed.kind) == (9, JobKind.DELETE_PATH)


async def test_one_call_may_name_a_path_twice(vault: Vault) -> None:
    assert await vault.enqueue("a.md", "a.md") == 1


async def test_a_human_word_is_kept_when_a_job_coalesces(vault: Vault) -> None:
    await vault.enqueue("a.md", confirmed=True)
    await vault.enqueue("a.md")
    assert [job.confirmed for job in await vault.claim()] == [True]


async def test_the_newest_note_goes_first(vault: Vault) -> None:
    await vault.enqueue("old.md", "middle.md", "new.md")
    assert [job.path for job in await vault.claim(limit=2)] == ["new.md", "middle.md"]
    assert [job.path for job in await vault.claim(limit=2)] == ["old.md"]


async def test_a_path_in_hand_is_given_to_nobody_else(vault: Vault) -> None:
    await vault.enqueue("a.md")
    (first,) = await vault.claim("one")
    await vault.enqueue("a.md")
    assert await vault.claim("two") == []
    async with vault.database.connection() as connection:
        await jobs.done(connection, "one", [first.id])
    (second,) = await vault.claim("two")
    assert (second.path, second.id > first.id) == ("a.md", True)


async def test_a_worker_whose_lease_lapsed_can_no_longer_close_the_job(vault: Vault) -> None:
    await vault.enqueue("a.md")
    (claimed,) = await vault.claim("slow")
    assert await vault.lapse() == 1
    await vault.claim("quick")
    async with vault.database.connection() as connection:
        await jobs.done(connection, "slow", [claimed.id])
        await jobs.fail(connection, "slow", claimed.id, "too late")
        await jobs.release(connection, "slow", [claimed.id])
    (job,) = await vault.jobs()
    assert (job.status, job.worker, job.error) == (JobStatus.PROCESSING, "quick", None)


async def test_a_lapsed_job_waits_again_and_fails_at_the_third_time_with_a_reason(vault: Vault) -> None:
    await vault.enqueue("a.md")
    for attempt in (1, 2):
        await vault.claim(f"worker-{attempt}")
        await vault.lapse()
        (job,) = await vault.jobs()
        assert (job.status, job.attempts) == (JobStatus.PENDING, attempt)
    await vault.claim("worker-3")
    await vault.lapse()
    (job,) = await vault.jobs()
    assert (job.status, job.finished_at is not None) == (JobStatus.FAILED, True)
    assert job.error == "The worker worker-3 stopped while it worked on this (attempt 3 of 3)."
    assert await vault.claim() == []


async def test_a_lease_that_is_renewed_does_not_lapse(vault: Vault) -> None:
    await vault.enqueue("a.md")
    (claimed,) = await vault.claim("w", lease=0.01)
    async with vault.database.connection() as connection:
        await jobs.renew(connection, "w", [claimed.id], lease=60)
        await connection.execute("SELECT pg_sleep(0.02)")
        assert await jobs.reclaim_lapsed(connection) == 0


async def test_a_note_that_kills_its_worker_cannot_hide_behind_being_saved_again(vault: Vault) -> None:
    await vault.enqueue("a.md", confirmed=True)
    for _ in range(3):
        await vault.claim()
        await vault.enqueue("a.md")  # saved while the worker dies over it
        await vault.lapse()
    (job,) = await vault.jobs()
    assert (job.status, job.attempts) == (JobStatus.PENDING, 3)
    (claimed,) = await vault.claim()
    assert claimed.confirmed, "the human's word is handed over too"
    await vault.lapse()
    assert [job.status for job in await vault.jobs()] == [JobStatus.FAILED]


async def test_a_third_lapse_takes_the_place_of_an_older_failure(vault: Vault) -> None:
    await _fail(vault, "a.md", "old")
    await vault.enqueue("a.md")
    for _ in range(3):
        await vault.claim()
        await vault.lapse()
    assert [job.error for job in await vault.jobs(JobStatus.FAILED)] == [
        "The worker w stopped while it worked on this (attempt 3 of 3)."
    ]


async def test_release_gives_the_claim_back_unharmed(vault: Vault) -> None:
    await vault.enqueue("a.md")
    (claimed,) = await vault.claim("w")
    async with vault.database.connection() as connection:
        await jobs.release(connection, "w", [claimed.id])
    (job,) = await vault.jobs()
    assert (job.status, job.attempts, job.worker, job.started_at) == (JobStatus.PENDING, 0, None, None)


async def test_a_released_job_whose_path_waits_already_is_folded_into_it(vault: Vault) -> None:
    await vault.enqueue("a.md", confirmed=True)
    (claimed,) = await vault.claim("w")
    await vault.enqueue("a.md")
    async with vault.database.connection() as connection:
        await jobs.release(connection, "w", [claimed.id])
    (again,) = await vault.claim("w")
    assert (again.id != claimed.id, again.confirmed) == (True, True)


async def test_a_delayed_job_is_claimed_only_when_its_time_has_come(vault: Vault) -> None:
    await vault.enqueue("a.md", delay=0.15)
    assert await vault.claim() == []
    claimed = await eventually(vault.claim)
    assert [job.path for job in claimed] == ["a.md"]


async def test_a_failure_replaces_the_one_before_it(vault: Vault) -> None:
    for error in ("first", "second"):
        await _fail(vault, "a.md", error)
    assert [job.error for job in await vault.jobs(JobStatus.FAILED)] == ["second"]


async def test_success_settles_the_failures_of_its_path_and_of_no_other(vault: Vault) -> None:
    await _fail(vault, "a.md", "bad")
    await _fail(vault, "b.md", "bad")
    await vault.enqueue("a.md")
    (claimed,) = await vault.claim("w")
    async with vault.database.connection() as connection:
        await jobs.done(connection, "w", [claimed.id])
    assert await vault.failures() == {"b.md": "bad"}


async def test_retry_takes_the_named_failures_or_all(vault: Vault) -> None:
    for path in ("a.md", "b.md", "c.md"):
        await _fail(vault, path, "bad")
    chosen = [job.id for job in await vault.jobs(JobStatus.FAILED) if job.path == "b.md"]
    assert await vault.notes.retry(chosen) == 1
    assert [job.path for job in await vault.claim()] == ["b.md"]
    assert await vault.notes.retry() == 2
    assert sorted(job.path for job in await vault.claim()) == ["a.md", "c.md"]
    assert await vault.notes.retry() == 0
    assert await vault.notes.retry([]) == 0


async def test_retry_starts_the_count_anew(vault: Vault) -> None:
    await vault.enqueue("a.md")
    for _ in range(3):
        await vault.claim()
        await vault.lapse()
    await vault.notes.retry()
    (job,) = await vault.jobs()
    assert (job.status, job.attempts, job.error) == (JobStatus.PENDING, 0, None)


async def test_retry_leaves_a_failure_alone_whose_path_waits_already(vault: Vault) -> None:
    await _fail(vault, "b.md", "bad")
    await vault.enqueue("b.md")
    assert await vault.notes.retry() == 0


async def test_jobs_of_a_folder_removed_meanwhile_are_queued_nowhere(vault: Vault) -> None:
    await vault.enqueue("a.md")
    await vault.notes.remove_folder(vault.folder.id)
    assert await vault.enqueue("b.md") == 0
    assert await vault.jobs() == []


async def test_what_makes_a_job_wait_again_never_meets_another_that_waits(vault: Vault) -> None:
    """Saves, retries, releases and lapses of one path at the same time: no error, one waiting job."""

    async def saving() -> None:
        for _ in range(30):
            await vault.enqueue("a.md")

    async def claiming(worker: str) -> None:
        for turn in range(30):
            for claimed in await vault.claim(worker, lease=0 if turn % 3 == 0 else 60):
                async with vault.database.transaction() as connection:
                    if turn % 3 == 1:
                        await jobs.fail(connection, worker, claimed.id, "bad")
                    else:
                        await jobs.release(connection, worker, [claimed.id])

    async def mending() -> None:
        for _ in range(30):
            await vault.notes.retry()
            async with vault.database.connection() as connection:
                await jobs.reclaim_lapsed(connection)

    await asyncio.gather(saving(), saving(), claiming("one"), claiming("two"), mending(), mending())
    assert len(await vault.jobs(JobStatus.PENDING)) <= 1


async def _fail(vault: Vault, path: str, error: str) -> None:
    await vault.enqueue(path)
    (claimed,) = await vault.claim("w")
    async with vault.database.connection() as connection:
        await jobs.fail(connection, "w", claimed.id, error)


HEAP, IN_HAND = 1500, 200


async def _looked_at(vault: Vault, statement: str, values: object) -> float:
    """Rows that the parts of a statement yield or refuse, as PostgreSQL counts them."""
    async with vault.database.transaction() as connection:
        explain = f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}"
        cursor = await connection.execute(explain.encode(), values)
        (answer,) = await cursor.fetchall()
    total, left = 0.0, [answer[0][0]["Plan"]]
    while left:
        node = left.pop()
        refused = sum(count for name, count in node.items() if name.startswith("Rows Removed"))
        total += (node["Actual Rows"] + refused) * node["Actual Loops"]
        left += node.get("Plans", ())
    return total


async def test_a_heap_that_comes_to_an_empty_queue_is_claimed_path_by_path(vault: Vault) -> None:
    """The planner believes the queue as empty as it was; a join would compare everything with everything."""
    paths = [f"{number}.md" for number in range(HEAP + IN_HAND)]
    await vault.enqueue(*paths)
    await vault.rows("UPDATE job SET status = 'done', finished_at = now()")
    await vault.rows("SELECT refresh_statistics()")
    await vault.enqueue(*paths[:IN_HAND])
    assert len(await vault.claim("other", limit=IN_HAND)) == IN_HAND
    await vault.enqueue(*paths)
    claim = {"limit": 100, "worker": "w", "lease": 60, "foreign": []}
    assert await _looked_at(vault, jobs._CLAIM, claim) < 20 * HEAP
    await vault.rows("UPDATE job SET status = 'failed' WHERE status = 'processing'")
    assert await _looked_at(vault, jobs._RETRY, {"ids": None}) < 20 * HEAP
