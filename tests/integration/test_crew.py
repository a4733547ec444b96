"""`noctuary worker --concurrency`: the processes share the queue, are replaced, and end with their parent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from engine.notes import jobs
from engine.notes.model import JobStatus
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.vault import Vault

ROOT = Path(__file__).parents[2]


class Crew:
    """A `noctuary worker --concurrency 3` and the processes it started."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        command = [sys.executable, "-m", "tui", "worker", "--concurrency", "3", "--no-embed"]
        self.parent = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    def workers(self) -> list[psutil.Process]:
        """The further workers, not the listeners or the server."""
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.parent.pid).children()
            return [each for each in children if "--attached" in each.cmdline()]
        return []

    def stop(self) -> None:
        left = self.workers()
        for process in [*left, self.parent]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.parent.wait()


@pytest.fixture
def crew(vault: Vault, environment: dict[str, str], database_url: str, tmp_path: Path) -> Iterator[Crew]:
    env = {**environment, "NOCTUARY_DATABASE_URL": database_url, "PYTHONPATH": str(ROOT)}
    started = Crew(env, tmp_path)
    yield started
    started.stop()


async def at_work(vault: Vault) -> set[str]:
    """The processes that have had jobs in hand."""
    rows = await vault.rows("SELECT DISTINCT split_part(worker, ':', 2) FROM job WHERE worker IS NOT NULL")
    return {row[0] for row in rows}


async def test_three_processes_share_the_queue_and_do_each_job_once(vault: Vault, crew: Crew) -> None:
    await eventually(lambda: len(crew.workers()) == 2)
    paths = [f"{number}.md" for number in range(3 * 1024)]
    for path in paths:
        vault.write(path, f"# {path}\n\nowls {path}\n" * 20)
    await vault.enqueue(*paths)

    async def finished() -> bool:
        counts = await vault.notes.job_counts()
        return not counts.pending and not counts.processing

    await eventually(finished, 120)
    done = await vault.jobs(JobStatus.DONE)
    assert sorted(job.path for job in done) == sorted(paths)
    assert {job.attempts for job in done} == {1}
    assert await vault.in_index() == vault.on_disk()
    pids = {str(crew.parent.pid), *(str(each.pid) for each in crew.workers())}
    took_part = await at_work(vault)
    assert took_part <= pids
    assert len(took_part) >= 2


async def test_a_process_that_was_killed_is_replaced(vault: Vault, crew: Crew) -> None:
    first = (await eventually(lambda: len(crew.workers()) == 2 and crew.workers()))[0]
    first.kill()
    await eventually(lambda: first.pid not in {each.pid for each in crew.workers()})
    await eventually(lambda: len(crew.workers()) == 2)


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_they_end_with_their_parent(vault: Vault, crew: Crew, by: signal.Signals) -> None:
    workers = await eventually(lambda: len(crew.workers()) == 2 and crew.workers())

    async def joined() -> bool:
        connected = await vault.value(
            "SELECT count(DISTINCT application_name || pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'noctuary worker%%'"
        )
        return bool(connected >= 3)

    await eventually(joined)
    os.kill(crew.parent.pid, by)
    crew.parent.wait(timeout=30)
    await eventually(lambda: not any(each.is_running() for each in workers), 30)
    async with vault.database.connection() as connection:
        assert not await jobs.waiting(connection)
