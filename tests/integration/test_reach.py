"""A folder on another machine's disk: never read here, its words left to a worker there, its vectors made."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from engine import notes as notes_module
from engine.errors import FolderError
from engine.notes import reach
from engine.notes.model import JobStatus, Mode
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.vault import Vault


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process on another machine from now on."""
    identity = tmp_path / "machine-id"
    identity.write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(reach, "MACHINE_ID", (identity,))
    reach.machine.cache_clear()
    yield
    reach.machine.cache_clear()


@pytest.fixture
async def remote(vault: Vault, request: pytest.FixtureRequest) -> Vault:
    """A vault of two notes, one indexed and one waiting; then this process is on another machine, on which
    other notes lie at the same path.
    """
    for number in range(3):
        vault.write(f"{number}.md", f"note {number} of owls\n", mtime=1_700_000_000)
    await vault.index()
    await vault.enqueue("later.md")
    shutil.rmtree(vault.root)
    vault.root.mkdir()
    vault.write("stranger.md", "a stranger's larks\n")
    request.getfixturevalue("elsewhere")
    await vault.notes._reach.refresh()
    return vault


async def test_jobs_of_a_foreign_folder_are_left_waiting_and_vectors_are_made(remote: Vault) -> None:
    indexed = await remote.in_index()
    async with asyncio.timeout(60):
        await remote.notes.work_until_idle(embed=True)
    assert await remote.in_index() == indexed
    assert [job.path for job in await remote.jobs(JobStatus.PENDING)] == ["later.md"]
    assert await remote.value("SELECT count(*) FROM embedding WHERE state = 'embedded'") == 3
    assert len((await remote.notes.search("owls", mode=Mode.VECTOR, k=10)).citations) == 3


async def test_a_survey_says_whose_the_folder_is_and_repairs_nothing(remote: Vault) -> None:
    report = await remote.notes.drift()
    (problem,) = report.problems
    assert "lies on another machine" in problem.reason
    assert [row for row in report.rows if row.cause not in {"job_failed", "other_model"}] == []
    assert await remote.notes.repair() == 0
    assert await remote.notes.index_all() == 0
    assert [job.path for job in await remote.jobs(JobStatus.PENDING)] == ["later.md"]


async def test_a_foreign_folder_is_not_watched(remote: Vault, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    own = await remote.notes.add_folder(here)
    remote.notes._watching = True
    await remote.notes._follow_folders()
    assert set(remote.notes._watchers) == {own.id}
    await remote.notes._services.stop()


async def test_a_folder_of_the_same_path_is_not_taken_for_that_of_another_machine(remote: Vault) -> None:
    with pytest.raises(FolderError, match="another machine"):
        await remote.notes.add_folder(remote.root)


@pytest.mark.usefixtures("elsewhere")
async def test_a_mount_of_the_same_notes_is_worked_on(vault: Vault) -> None:
    vault.write("a.md", "owls\n", mtime=1_700_000_000)
    await vault.index()
    await vault.rows("UPDATE folder SET machine = 'the desk', host = 'desk'")
    os.utime(vault.root / "a.md", (1_700_000_001, 1_700_000_001))  # coarse times, as over a network
    await vault.notes._reach.refresh()
    vault.write("b.md", "larks\n")
    await vault.index()
    assert await vault.in_index() == vault.on_disk()


@pytest.mark.usefixtures("elsewhere")
async def test_a_mount_that_comes_later_is_noticed(vault: Vault, tmp_path: Path) -> None:
    vault.write("a.md", "owls\n", mtime=1_700_000_000)
    await vault.index()
    await vault.rows("UPDATE folder SET machine = 'the desk', host = 'desk'")
    vault.root.rename(tmp_path / "away")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notes_module, "FIRST_MAINTENANCE", 0.05)
        patch.setattr(notes_module, "MAINTENANCE_INTERVAL", 0.05)
        await vault.notes.start(watch=True, work=True, embed=False)
        await eventually(lambda: vault.notes._reach.foreign() == [vault.folder.id])
        assert vault.notes._watchers == {}
        (tmp_path / "away").rename(vault.root)
        vault.write("b.md", "larks\n")

        async def followed() -> bool:
            return await vault.in_index() == vault.on_disk()

        await eventually(followed)
        assert set(vault.notes._watchers) == {vault.folder.id}
        await vault.notes._services.stop()


@pytest.mark.usefixtures("elsewhere")
async def test_an_empty_foreign_folder_is_not_believed(vault: Vault) -> None:
    await vault.rows("UPDATE folder SET machine = 'the desk'")
    vault.write("a.md", "owls\n")
    await vault.index()
    assert await vault.in_index() == {}


async def test_a_folder_of_an_unknown_machine_is_ours_and_so_is_one_that_is_added_here(vault: Vault) -> None:
    assert await vault.value("SELECT machine FROM folder") == reach.machine()
    await vault.rows("UPDATE folder SET machine = NULL")
    async with watched(vault) as live:
        live.vault.write("a.md", "owls\n")
        await live.agrees()
    await vault.notes.add_folder(vault.root)
    assert await vault.value("SELECT machine FROM folder") == reach.machine()


def test_a_machine_without_an_id_is_known_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("")
    monkeypatch.setattr(reach, "MACHINE_ID", (tmp_path / "missing", tmp_path / "empty"))
    reach.machine.cache_clear()
    assert reach.machine() == f"host {reach.host()}"
    reach.machine.cache_clear()
