"""Drift of thousands of notes at once: every row is told and mended, and only those that were meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.notes.model import DriftCause, JobStatus

if TYPE_CHECKING:
    from tests.integration.vault import Vault

MANY = 1_000


async def test_thousands_of_rows_are_mended_those_that_are_meant_first(vault: Vault) -> None:
    for number in range(2 * MANY):
        vault.write(f"old/{number:04}.md", f"note {number} of the herons\n")
    await vault.index()
    for number in range(MANY):
        vault.write(f"new/{number:04}.md", f"note {number} of the owls\n")
        vault.write(f"old/{number:04}.md", f"note {number} was written again\n")
        (vault.root / f"old/{MANY + number:04}.md").unlink()
    report = await vault.notes.drift()
    counts = {cause: count for cause, count in report.counts().items() if count}
    assert counts == {DriftCause.NOT_INDEXED: MANY, DriftCause.CHANGED: MANY, DriftCause.ORPHANED: MANY}

    some = [row.key for row in (await vault.notes.drift(["new"])).rows]
    assert len(some) == MANY
    assert await vault.notes.repair(some) == MANY
    assert await vault.notes.repair(some) == 0, "each waits already"
    waiting = await vault.jobs(JobStatus.PENDING)
    assert {job.path for job in waiting} == {f"new/{number:04}.md" for number in range(MANY)}

    assert await vault.notes.repair() == 2 * MANY
    await vault.notes.work_until_idle(embed=False)
    assert (await vault.notes.drift()).rows == ()
    assert await vault.in_index() == vault.on_disk()
    assert await vault.failures() == {}
    assert await vault.found("herons") == []
    assert len(await vault.found("owls", k=200)) == 200
    await vault.check()
