"""An empty, missing, unmounted or unreadable folder never empties the index by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from engine.notes.model import DriftCause

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.vault import Vault


@pytest.fixture
async def filled(vault: Vault) -> Vault:
    for path in ("a.md", "sub/b.md"):
        vault.write(path, f"owls in {path}\n")
    await vault.index()
    return vault


async def kept(vault: Vault) -> None:
    """Surveys and hints of deletions, and the index is as it was."""
    await vault.notes.index_all()
    await vault.enqueue("a.md", "sub/b.md")
    await vault.notes.work_until_idle(embed=False)
    assert sorted(await vault.in_index()) == ["a.md", "sub/b.md"]
    assert len(await vault.found("owls")) == 2
    assert await vault.failures() == {}


async def test_an_emptied_root_keeps_the_index_until_a_human_confirms(filled: Vault) -> None:
    for child in filled.root.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    await kept(filled)
    report = await filled.notes.drift()
    assert [problem.reason for problem in report.problems] == [
        "The folder holds no notes any more; what is indexed is kept until you repair it."
    ]
    assert report.counts()[DriftCause.ORPHANED] == 2
    assert await filled.notes.repair() == 2
    await filled.notes.work_until_idle(embed=False)
    assert await filled.in_index() == {}
    assert (await filled.notes.drift()).problems == ()
    await filled.check()


async def test_a_confirmed_repair_of_marks_removes_only_these(filled: Vault) -> None:
    for child in filled.root.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()
    marks = [row.key for row in (await filled.notes.drift()).rows if row.path == "a.md"]
    await filled.notes.repair(marks)
    await filled.notes.work_until_idle(embed=False)
    assert sorted(await filled.in_index()) == ["sub/b.md"]


async def test_a_missing_root_keeps_the_index(filled: Vault) -> None:
    shutil.rmtree(filled.root)
    await kept(filled)
    (problem,) = (await filled.notes.drift()).problems
    assert problem.folder == filled.root
    assert problem.reason.startswith("The folder cannot be reached (No such file or directory)")
    filled.write("a.md", "back again\n")
    await filled.index()
    assert sorted(await filled.in_index()) == ["a.md"], "with notes on the disk its word counts again"


async def test_a_root_that_became_a_file_keeps_the_index(filled: Vault) -> None:
    shutil.rmtree(filled.root)
    filled.root.write_text("no folder")
    await kept(filled)
    (problem,) = (await filled.notes.drift()).problems
    assert problem.reason == "It is no folder any more; its notes are kept as they were."


@pytest.fixture
def mounted(filled: Vault) -> Iterator[Vault]:
    """The root with an empty file system mounted over it: what it looks like when a disk is not there."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount")
    mount = ["mount", "-t", "tmpfs", "none", str(filled.root)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    yield filled
    subprocess.run(["umount", "-l", str(filled.root)], check=True)


async def test_an_empty_file_system_in_place_of_the_root_keeps_the_index(mounted: Vault) -> None:
    await kept(mounted)
    (problem,) = (await mounted.notes.drift()).problems
    assert problem.reason.startswith("Another file system is mounted there and holds no notes")


async def test_a_stray_note_under_a_mount_that_is_gone_orphans_nothing(mounted: Vault) -> None:
    mounted.write("README.md", "the disk is not mounted\n")
    await mounted.notes.ingest(mounted.root / "README.md")
    await mounted.notes.index_all()
    assert (await mounted.notes.ingest(mounted.root / "sub")) == 0, "a part is not believed either"
    await mounted.enqueue("a.md", "sub/b.md")
    await mounted.notes.work_until_idle(embed=False)
    assert sorted(await mounted.in_index()) == ["README.md", "a.md", "sub/b.md"]
    report = await mounted.notes.drift()
    assert ["another file system than before" in problem.reason for problem in report.problems] == [True]
    assert report.counts()[DriftCause.ORPHANED] == 2
    await mounted.notes.index_all()
    assert (await mounted.notes.drift()).problems != (), "it is not taken for the root by being seen again"
    assert await mounted.notes.repair() == 2
    await mounted.notes.work_until_idle(embed=False)
    assert sorted(await mounted.in_index()) == ["README.md"]
    assert (await mounted.notes.drift()).problems == ()


async def test_a_file_system_with_another_number_is_the_same_root_when_nothing_is_missing(
    filled: Vault,
) -> None:
    await filled.rows("UPDATE folder SET device = device + 1")
    assert (await filled.notes.drift()).problems == ()
    await filled.notes.index_all()
    assert await filled.rows("SELECT device FROM folder") == [(filled.root.stat().st_dev,)]
    (filled.root / "a.md").unlink()
    await filled.index()
    assert sorted(await filled.in_index()) == ["sub/b.md"]


async def test_a_folder_that_cannot_be_read_keeps_its_notes(
    filled: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rights do not bind root, so the refusal is put in the way; real rights are tested elsewhere."""
    real = os.scandir

    def refusing(path: Path) -> object:
        if str(path).endswith("/sub"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", refusing)
    await filled.index()
    assert sorted(await filled.in_index()) == ["a.md", "sub/b.md"]
    (row,) = (await filled.notes.drift()).rows
    assert (row.path, row.detail) == ("sub", "cannot be read: Permission denied")
    await filled.notes.repair()
    await filled.notes.work_until_idle(embed=False)
    assert sorted(await filled.in_index()) == ["a.md", "sub/b.md"]


async def test_a_root_without_notes_is_no_problem_when_there_never_were_any(vault: Vault) -> None:
    report = await vault.notes.drift()
    assert (report.rows, report.problems) == ((), ())


async def test_one_lost_folder_does_not_hide_the_drift_of_another(filled: Vault, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "new.md").write_text("x\n")
    await filled.notes.add_folder(other)
    shutil.rmtree(filled.root)
    assert await filled.notes.index_all() == 1
    report = await filled.notes.drift()
    assert len(report.problems) == 1
    assert [row.path for row in report.rows if row.folder == other] == ["new.md"]
