"""File systems that come and go at, above and below a root: noticed at once, however short they were away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.notes import listening, watcher
from engine.notes.listening import Mounts
from tests.faults.mounts import may_mount, mount, mounted, unmount  # noqa: F401 - a fixture
from tests.faults.truth import settle
from tests.integration.watching import watched

if TYPE_CHECKING:
    from tests.integration.vault import Vault

TMPFS = ("-t", "tmpfs", "tmpfs")


@pytest.mark.usefixtures("may_mount")
async def test_a_root_that_was_away_for_a_moment_is_surveyed_and_watched_anew(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes back as the same device, so that nothing but its end tells of it."""
    monkeypatch.setattr(watcher, "BEAT", 3600.0)
    with mounted(vault.root, *TMPFS):
        vault.write("old.md", "there before\n")
        async with watched(vault) as held:
            for turn in range(3):
                unmount(vault.root)
                mount(*TMPFS, str(vault.root))
                vault.write("old.md", "there before\n")
                vault.write(f"{turn}.md", f"written before anybody watched, turn {turn}\n")
                await settle(vault)
                vault.write("after.md", f"written afterwards, turn {turn}\n")
                await settle(vault)
            assert held.services.faults == {}
        assert set(await vault.in_index()) == {"old.md", "2.md", "after.md"}


@pytest.mark.usefixtures("may_mount")
async def test_what_is_mounted_below_a_root_is_indexed_and_watched(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "BEAT", 3600.0)
    vault.write("top.md", "in the root itself\n")
    vault.write("a b/covered.md", "what is mounted here covers it\n")
    async with watched(vault) as held:
        with mounted(vault.root / "a b", *TMPFS):
            vault.write("a b/deep/new.md", "in what is mounted\n")
            await settle(vault)
            vault.write("a b/deep/new.md", "in what is mounted, edited\n")
            await settle(vault)
            assert set(await vault.in_index()) == {"top.md", "a b/deep/new.md"}
        await settle(vault)
        assert set(await vault.in_index()) == {"top.md", "a b/covered.md"}
        assert held.services.faults == {}


@pytest.mark.usefixtures("may_mount")
def test_only_what_concerns_the_folder_is_told_and_each_once(tmp_path: Path) -> None:
    root, other = tmp_path / "above" / "root", tmp_path / "above" / "root and more"
    (root / "sub").mkdir(parents=True)
    with Mounts(str(root)) as mounts:
        with mounted(other, *TMPFS):
            assert not mounts.changed()
        assert not mounts.changed()
        with mounted(root / "sub", *TMPFS):
            assert mounts.changed()
        assert not mounts.changed(), "it is as it was"
    with mounted(tmp_path / "above", *TMPFS), Mounts(str(root)) as mounts:
        unmount(tmp_path / "above")
        assert mounts.changed()


@pytest.mark.usefixtures("may_mount")
@pytest.mark.parametrize("below", ["", "sub"])
def test_what_was_away_between_two_looks_is_told(tmp_path: Path, below: str) -> None:
    with mounted(tmp_path / "root" / below, *TMPFS), Mounts(str(tmp_path / "root")) as mounts:
        unmount(tmp_path / "root" / below)
        mount(*TMPFS, str(tmp_path / "root" / below))
        assert mounts.changed()


def _open() -> set[str]:
    """The numbers of what this process has open."""
    return {each.name for each in Path("/dev/fd").iterdir()}


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = _open()
    with Mounts(str(tmp_path)) as mounts:
        assert not mounts.changed()
    assert _open() == before


def test_the_table_of_mounts_is_read_as_the_kernel_spells_it() -> None:
    line = rb"36 35 98:0 /mnt1 /a\040b\134c\012d"
    assert listening._place(line) == b"/a b\\c\nd"
    assert listening._within("/a/b", "/")
    assert listening._within("/a/b", "/a/b/")
    assert not listening._within("/a/bc", "/a/b")
