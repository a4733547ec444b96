"""Drift: the five causes told apart, counted, explained and mended; and what is no drift."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from engine.models.embedding.bundled import MODEL_ID
from engine.notes import disk
from engine.notes.model import DriftCause, JobStatus

if TYPE_CHECKING:
    from pathlib import Path

    from engine.notes.model import DriftReport, DriftRow
    from tests.integration.vault import Vault


async def rows(vault: Vault) -> dict[str, DriftRow]:
    return {row.path: row for row in (await vault.notes.drift()).rows}


def counted(report: DriftReport) -> dict[str, int]:
    return {str(cause): count for cause, count in report.counts().items() if count}


async def test_nothing_differs_after_indexing(vault: Vault) -> None:
    vault.write("a.md", "owls\n")
    await vault.index(embed=True)
    report = await vault.notes.drift()
    assert (report.rows, report.problems, report.files_on_disk, report.files_in_index) == ((), (), 1, 1)
    assert set(report.counts()) == set(DriftCause)
    assert await vault.notes.index_all() == 0


@pytest.fixture
async def drifted(vault: Vault) -> Vault:
    """One note for each cause, and one that is as it should be."""
    for path in ("same.md", "changed.md", "orphaned.md", "model.md"):
        vault.write(path, f"{path} words\n")
    await vault.index(embed=True)
    await vault.save("failed.md", b"\xff")
    vault.write("new.md", "new\n", mtime=1_600_000_000)
    vault.write("changed.md", "written since\n", mtime=1_600_000_001)
    (vault.root / "orphaned.md").unlink()
    await vault.rows("SELECT register_model('older', 384, 'bundled', 'older')")
    await vault.rows(
        "UPDATE embedding SET model = (SELECT id FROM model WHERE name = 'older') FROM passage"
        " WHERE passage.id = passage AND text LIKE 'model.md%%'"
    )
    return vault


async def test_each_cause_is_counted_and_explained(drifted: Vault) -> None:
    report = await drifted.notes.drift()
    found = {row.path: (row.cause, row.detail) for row in report.rows}
    assert found == {
        "new.md": (DriftCause.NOT_INDEXED, "on the disk, not in the index"),
        "orphaned.md": (DriftCause.ORPHANED, "in the index, not on the disk"),
        "changed.md": (DriftCause.CHANGED, "written since it was indexed"),
        "model.md": (DriftCause.OTHER_MODEL, "has vectors of older and not of the model in use"),
        "failed.md": (DriftCause.JOB_FAILED, (await drifted.failures())["failed.md"]),
    }
    assert report.counts() == dict.fromkeys(DriftCause, 1)
    assert (report.files_on_disk, report.files_in_index) == (5, 4)
    assert len({row.key for row in report.rows}) == 5
    since = {row.path: row.since.timestamp() for row in report.rows if row.since}
    assert (since["new.md"], since["changed.md"]) == (1_600_000_000, 1_600_000_001)
    assert since["failed.md"] > time.time() - 60
    assert not any(row.queued for row in report.rows)


async def test_looking_queues_nothing_and_changes_nothing(drifted: Vault) -> None:
    before = await drifted.in_index(), await drifted.jobs()
    await drifted.notes.drift()
    assert (await drifted.in_index(), await drifted.jobs()) == before


async def test_repair_of_marks_mends_these_and_no_others(drifted: Vault) -> None:
    marks = [row.key for row in (await drifted.notes.drift()).rows if row.path in {"new.md", "orphaned.md"}]
    assert await drifted.notes.repair(marks) == 2
    waiting = await rows(drifted)
    assert {path for path, row in waiting.items() if row.queued} == {"new.md", "orphaned.md"}
    assert waiting["new.md"].detail == "on the disk, not in the index; a job waits for it"
    await drifted.notes.work_until_idle(embed=False)
    assert counted(await drifted.notes.drift()) == {"changed": 1, "other_model": 1, "job_failed": 1}
    assert await drifted.notes.repair([]) == 0


async def test_repair_of_all_mends_all_that_can_be_mended(drifted: Vault) -> None:
    drifted.write("failed.md", "mended by hand\n")
    assert await drifted.notes.repair() == 5
    await drifted.notes.work_until_idle()
    assert (await drifted.notes.drift()).rows == ()
    assert await drifted.in_index() == drifted.on_disk()
    assert await drifted.failures() == {}


async def test_repair_of_a_failure_that_has_not_gone_away_fails_again_visibly(drifted: Vault) -> None:
    await drifted.notes.repair()
    await drifted.notes.work_until_idle()
    assert counted(await drifted.notes.drift()) == {"job_failed": 1}


async def test_a_job_in_hand_is_said_so(drifted: Vault) -> None:
    await drifted.notes.repair()
    await drifted.claim()
    assert (await rows(drifted))["new.md"].detail.endswith("; a job works on it")


async def test_touch_and_chmod_are_no_change(vault: Vault) -> None:
    file = vault.write("a.md", "owls\n")
    await vault.index()
    os.utime(file, (1_600_000_000, 1_600_000_000))
    file.chmod(0o600)
    report = await vault.notes.drift()
    assert (report.rows, await vault.notes.index_all()) == ((), 0)


async def test_a_touched_note_is_read_once_and_not_at_every_look(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = vault.write("a.md", "owls\n")
    await vault.index()
    os.utime(file, (1_600_000_000, 1_600_000_000))
    read: list[Path] = []
    real = disk.read

    def noting(path: Path) -> disk.Reading | None:
        read.append(path)
        return real(path)

    monkeypatch.setattr(disk, "read", noting)
    monkeypatch.setattr(disk, "YOUNG_NS", 0)  # as if some time had passed
    for _ in range(3):
        await vault.notes.drift()
    assert read == [file]


async def test_an_edit_within_the_same_tick_is_noticed_at_the_next_look(vault: Vault) -> None:
    """Same size, same time stamps: only a file too young to be trusted gives it away."""
    for number in range(20):
        file = vault.write("a.md", f"owls {number:03}\n")
        stamp = file.stat()
        await vault.notes.ingest(file)
        await vault.notes.work_until_idle(embed=False)
        with file.open("r+") as stream:
            stream.write(f"cats {number:03}\n")
        os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        await vault.rows("UPDATE file SET ctime_ns = %s WHERE ctime_ns <> 0", file.stat().st_ctime_ns)
        if await vault.value("SELECT ctime_ns FROM file"):
            continue  # the machine was so slow that the file had grown old when it was read
        assert set(await rows(vault)) == {"a.md"}
        return
    pytest.fail("a file that was just written was trusted twenty times")


async def test_a_failed_note_is_not_tried_again_until_it_is_written(vault: Vault) -> None:
    vault.write("a.md", b"\xff")
    await vault.index()
    for _ in range(2):
        assert await vault.notes.index_all() == 0
    vault.write("a.md", "mended\n")
    assert await vault.notes.index_all() == 1
    await vault.notes.work_until_idle(embed=False)
    assert (await vault.failures(), await vault.found("mended")) == ({}, ["a.md"])


async def test_a_failed_note_that_was_deleted_is_drift_no_more(vault: Vault) -> None:
    vault.write("stays.md", "x\n")
    file = vault.write("a.md", b"\xff")
    await vault.index()
    file.unlink()
    await vault.index()
    assert await vault.failures() == {}
    assert (await vault.notes.drift()).rows == ()


async def test_a_note_dated_outside_the_calendar_is_no_trouble(vault: Vault) -> None:
    for path, seconds in (("future.md", 10_000_000_000), ("past.md", -1)):
        vault.write(path, f"{path} words\n", mtime=seconds)
    assert len((await vault.notes.drift()).rows) == 2
    await vault.notes.repair()
    await vault.notes.work_until_idle(embed=False)
    assert await vault.in_index() == vault.on_disk()


async def test_another_model_is_named_until_the_model_in_use_has_made_its_vectors(drifted: Vault) -> None:
    marks = [row.key for row in (await rows(drifted)).values() if row.cause is DriftCause.OTHER_MODEL]
    assert await drifted.notes.repair(marks) == 1
    await drifted.notes.work_until_idle()
    assert "model.md" not in await rows(drifted)
    names = await drifted.rows(
        "SELECT DISTINCT model.name FROM embedding JOIN model ON model.id = embedding.model JOIN passage ON passage.id = passage"
        " WHERE text LIKE 'model.md%%' AND state = 'embedded' ORDER BY name"
    )
    assert names == [(MODEL_ID,), ("older",)]


async def test_what_the_model_in_use_will_read_by_itself_waits_for_nobody(drifted: Vault) -> None:
    assert not (await rows(drifted))["model.md"].queued
    await drifted.notes.embedders.backlog.fill()
    row = (await rows(drifted))["model.md"]
    assert (row.queued, row.detail.rpartition("; ")[2]) == (True, "its vectors are waited for")


async def test_what_failed_is_an_open_matter_only_once(drifted: Vault) -> None:
    """A failed note that is also missing from the index is one row, with the failure as its cause."""
    assert [row.cause for row in (await drifted.notes.drift()).rows if row.path == "failed.md"] == [
        DriftCause.JOB_FAILED
    ]
    assert len(await drifted.jobs(JobStatus.FAILED)) == 1
