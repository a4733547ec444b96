"""The clock set back or forward, and notes dated in other centuries: nothing hangs, nothing is lost.

To set the database's clock back by an hour is the same as to move every stamp in its tables an hour ahead.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from engine.notes import disk, upkeep
from engine.notes.model import DriftCause, JobStatus
from tests.faults.truth import settle
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from tests.integration.vault import Vault

HOUR = 3600
STAMPS = {
    "job": ("not_before", "lease_until", "created_at", "started_at", "finished_at"),
    "passage": ("orphaned_at",),
    "file": ("indexed_at",),
    "watcher": ("beat_at",),
}
LONG = 10 * 365 * 24 * HOUR


async def set_back(vault: Vault, seconds: int) -> None:
    """Set the database's clock back, or forward with a negative number."""
    for table, columns in STAMPS.items():
        changes = ", ".join(f"{column} = {column} + {seconds} * interval '1 second'" for column in columns)
        await vault.rows(f"UPDATE {table} SET {changes}")


@pytest.mark.parametrize("seconds", [HOUR, LONG, -HOUR, -LONG])
async def test_jobs_that_wait_or_were_in_a_killed_workers_hands_are_done(vault: Vault, seconds: int) -> None:
    for number in range(6):
        vault.write(f"{number}.md", f"word{number}\n")
    await vault.notes.index_all()
    assert len(await vault.claim("killed", limit=3, lease=60 if seconds > 0 else 10 * HOUR)) == 3
    await set_back(vault, seconds)
    if seconds == -HOUR:  # not long enough for that lease: it lapses when its time has come
        await vault.lapse()
    await vault.notes.work_until_idle(embed=False)
    await settle(vault, timeout=1)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
async def test_a_worker_goes_on_over_a_change_of_the_clock(vault: Vault, seconds: int) -> None:
    async with watched(vault) as held:
        for number in range(300):
            vault.write(f"{number % 7}/{number}.md", f"word{number}\n" * 30)
            if number % 50 == 0:
                await set_back(vault, seconds)
        (vault.root / "0/0.md").unlink()
        await settle(vault)
        assert held.services.faults == {}


@pytest.mark.parametrize("seconds", [HOUR, LONG])
async def test_a_failed_note_that_was_mended_since_is_tried_again(vault: Vault, seconds: int) -> None:
    await vault.save("a.md", b"\xff\xff")
    assert list(await vault.failures()) == ["a.md"]
    await set_back(vault, seconds)
    vault.write("a.md", "mended\n")
    await vault.index()
    await settle(vault, timeout=1)
    assert await vault.failures() == {}


async def test_texts_and_jobs_of_the_future_are_tidied_away_in_their_time(vault: Vault) -> None:
    await vault.save("a.md", "owls\n")
    await vault.save("a.md", "larks\n")
    await set_back(vault, LONG)
    await upkeep.once(vault.database)
    await set_back(vault, -8 * 24 * HOUR - 2 * 24 * HOUR)
    await upkeep.once(vault.database)
    assert list(await vault.passages()) == ["larks"]
    assert await vault.value("SELECT count(*) FROM passage") == 1
    assert await vault.jobs(JobStatus.DONE) == []
    await vault.check()


@pytest.mark.parametrize("year", [1905, 1969, 2100, 2250])
async def test_notes_dated_in_another_century_are_indexed_changed_and_removed(
    vault: Vault, year: int
) -> None:
    when = (year - 1970) * 365.25 * 24 * HOUR
    vault.write("old.md", "owls\n", mtime=when)
    vault.write("other.md", "so that the root is not empty\n")
    async with watched(vault):
        vault.write("old.md", "larks\n", mtime=when)
        await eventually(lambda: vault.found("larks"))
        vault.write("new.md", "swifts\n", mtime=when)
        await settle(vault)
        (vault.root / "old.md").unlink()
        await settle(vault)


async def test_a_note_of_the_future_that_fails_is_not_tried_at_every_survey(vault: Vault) -> None:
    file = vault.write("a.md", b"\xff\xff")
    os.utime(file, (LONG + 2e9, LONG + 2e9))
    await eventually(lambda: _settled(vault))
    await vault.index()
    assert list(await vault.failures()) == ["a.md"]
    assert await vault.notes.index_all() == 0
    (row,) = (await vault.notes.drift()).rows
    assert row.cause is DriftCause.JOB_FAILED


def _settled(vault: Vault) -> bool:
    """Whether the notes are old enough for their stamps to be believed."""
    import time

    return all(time.time_ns() - file.stat().st_ctime_ns > disk.YOUNG_NS for file in vault.root.iterdir())
