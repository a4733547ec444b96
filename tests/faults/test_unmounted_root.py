"""The root is a file system of its own which is unmounted and mounted again: its notes are kept meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.notes import disk, watcher
from tests.faults.mounts import may_mount, mount, mounted, unmount  # noqa: F401 - a fixture
from tests.faults.truth import settle
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.vault import Vault

_DELETIONS = "SELECT path FROM job WHERE kind = 'delete_path' AND path <> 'stray.md'"


@pytest.mark.usefixtures("may_mount")
async def test_a_root_that_is_unmounted_keeps_its_index_and_is_followed_when_it_is_back(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "BEAT", 0.2)
    store = tmp_path / "store"
    with mounted(store, "-t", "tmpfs", "tmpfs"), mounted(vault.root, "--bind", str(store)):
        for number in range(30):
            vault.write(f"{number % 3}/{number}.md", f"word{number}\n")
        async with watched(vault) as held:
            assert len(await vault.in_index()) == 30
            for turn in range(3):
                before = len(await vault.in_index())
                unmount(vault.root)
                await eventually(lambda: _problem(vault))
                if turn == 1:
                    vault.write("stray.md", "written below the mount point\n")
                    await eventually(lambda: vault.found("below"))
                assert len(await vault.in_index()) == before + (turn == 1)
                await vault.notes.index_all()
                assert await vault.rows(_DELETIONS) == []
                (vault.root / "stray.md").unlink(missing_ok=True)
                (store / f"{turn}.md").write_text("written while it was away\n")
                mount("--bind", str(store), str(vault.root))
                await settle(vault)
                vault.write(f"after{turn}.md", "written after its return\n")
                await settle(vault)
            assert held.services.faults == {}
        assert len(await vault.in_index()) == 36


@pytest.mark.usefixtures("may_mount")
async def test_a_root_unmounted_while_it_is_surveyed_is_not_taken_for_the_one_below_it(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every note was seen, and a moment later another file system was: a stray note there empties no index."""
    vault.write("stray.md", "written below the mount point\n")
    with mounted(vault.root, "-t", "tmpfs", "tmpfs"):
        for number in range(5):
            vault.write(f"{number}.md", f"word{number}\n")
        await vault.index()
        real = disk.listing

        def listed(root: Path, below: str = "") -> disk.Listing:
            found = real(root, below)
            unmount(root)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(disk, "listing", listed)
            await vault.notes.index_all()
        await vault.index()
        assert set(await vault.in_index()) == {"stray.md", *(f"{number}.md" for number in range(5))}
        assert (await vault.notes.drift()).problems


async def _problem(vault: Vault) -> bool:
    return bool((await vault.notes.drift()).problems)
