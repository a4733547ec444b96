"""A note that kills every worker which reads it: it fails with a sentence, and nothing else does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.notes.model import DriftCause, JobStatus
from engine.notes.worker import Worker
from tests.faults.nursery import POISON
from tests.faults.truth import settle
from tests.support import eventually

if TYPE_CHECKING:
    from tests.faults.nursery import Nursery
    from tests.integration.vault import Vault

INNOCENT = 40


async def test_a_note_that_kills_its_worker_fails_at_the_third_time_and_takes_no_other_with_it(
    vault: Vault, environment: dict[str, str], nursery: Nursery
) -> None:
    """All of a batch die with the worker that holds it; only the one that kills may fail for it."""
    mine = {**environment, "DATABASE_URL": vault.settings.database_url or "", "NOCTUARY_LEASE_SECONDS": "0.3"}
    for number in range(INNOCENT):
        vault.write(f"{number}.md", f"word{number} owls\n", mtime=1_600_000_000 + number)
    vault.write("poison.md", POISON, mtime=1_600_000_000 + INNOCENT / 2)
    await vault.notes.index_all()
    for _ in range(3):
        pid = await nursery.spawn(mine, "work")
        async with asyncio.timeout(20):
            assert await nursery.ended(pid) < 0
    assert sorted(await vault.in_index()) == sorted(f"{number}.md" for number in range(INNOCENT))
    pid = await nursery.spawn(mine, "work")
    await eventually(vault.failures)
    await settle(vault)
    failures = await vault.failures()
    assert list(failures) == ["poison.md"]
    assert "stopped while it worked on this (attempt 3 of 3)." in failures["poison.md"]
    (row,) = (await vault.notes.drift()).rows
    assert (row.cause, row.path, row.detail) == (DriftCause.JOB_FAILED, "poison.md", failures["poison.md"])
    vault.write("poison.md", "harmless now\n")
    await vault.notes.index_all()
    await settle(vault)
    assert await vault.failures() == {}


async def test_a_server_that_forgot_that_jobs_were_done_has_them_done_again_at_once(vault: Vault) -> None:
    """Indexing does not wait for the platter: a crash of the server undoes the last moments of it."""
    worker = Worker(vault.database, lease=3600, models=vault.notes.embedders.models)
    running = asyncio.create_task(worker.run())
    for number in range(5):
        vault.write(f"{number}.md", f"word{number}\n")
    await vault.notes.index_all()
    worker.wake()
    await settle(vault)
    await vault.rows("DELETE FROM chunk WHERE file IN (SELECT id FROM file WHERE path > '2')")
    await vault.rows("DELETE FROM file WHERE path > '2'")
    await vault.rows(
        "UPDATE job SET status = 'processing', finished_at = NULL, lease_until = now() + interval '1 h'"
        " WHERE path > '2'"
    )
    worker.wake()
    await settle(vault, timeout=5)
    running.cancel()
    await asyncio.wait({running})


async def test_a_worker_that_was_stopped_without_the_database_takes_up_its_jobs_at_once(vault: Vault) -> None:
    """It could not give them back, and its lease has long to run."""
    worker = Worker(vault.database, lease=3600, models=vault.notes.embedders.models)
    for number in range(5):
        vault.write(f"{number}.md", f"word{number}\n")
    await vault.notes.index_all()
    assert len(await vault.claim(worker.name, lease=3600)) == 5
    running = asyncio.create_task(worker.run())
    await settle(vault, timeout=5)
    running.cancel()
    await asyncio.wait({running})
    assert {(job.status, job.attempts) for job in await vault.jobs()} == {(JobStatus.DONE, 1)}
