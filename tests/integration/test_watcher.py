"""The watcher on real files and the kernel's real events: after quiet, the index equals the disk."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from engine.notes.model import WatchMode
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.vault import Vault
    from tests.integration.watching import Watched


async def test_a_saved_note_is_found_by_keyword_within_a_second(live: Watched) -> None:
    live.vault.write("new.md", "freshly written\n")
    await eventually(lambda: live.vault.found("freshly"), timeout=1.5)


async def test_folders_made_deep_and_written_into_at_once(live: Watched) -> None:
    """The kernel has no watch on a new folder yet when its first files are written."""
    for number in range(200):
        live.vault.write(f"q{number}/a/b/n.md", f"word{number}\n")
    await live.agrees()
    assert len(await live.vault.in_index()) == 201


async def test_a_large_copy(live: Watched, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for folder in range(100):
        (source / f"{folder}").mkdir(parents=True)
        for number in range(20):
            (source / f"{folder}/{number}.md").write_text(f"word{folder} number{number}\n")
    shutil.copytree(source, live.vault.root / "copied")
    await live.agrees(30)
    assert len(await live.vault.in_index()) == 2001


async def test_a_folder_moved_in_renamed_and_moved_out(live: Watched, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    for path in ("a.md", "deep/b.md"):
        (outside / path).write_text(f"{path} moved\n")
    outside.rename(live.vault.root / "in")
    await live.agrees()
    assert "in/deep/b.md" in await live.vault.in_index()
    (live.vault.root / "in").rename(live.vault.root / "renamed")
    await live.agrees()
    assert "renamed/deep/b.md" in await live.vault.in_index()
    (live.vault.root / "renamed").rename(outside)
    await live.agrees()
    assert sorted(await live.vault.in_index()) == ["first.md"]


async def test_a_folder_called_like_a_note_is_moved_out(live: Watched, tmp_path: Path) -> None:
    live.vault.write("dir.md/a.md", "inside\n")
    await live.agrees()
    (live.vault.root / "dir.md").rename(tmp_path / "gone.md")
    await live.agrees()
    live.vault.write("dir.md", "now a note\n")
    await live.agrees()
    (live.vault.root / "dir.md").unlink()
    live.vault.write("dir.md/b.md", "a folder again\n")
    await live.agrees()


async def test_an_atomic_save_is_an_edit(live: Watched) -> None:
    live.vault.write("a.md", "before\n")
    await live.agrees()
    identity = await live.vault.value("SELECT id FROM file WHERE path = 'a.md'")
    for number in range(5):
        temporary = live.vault.write(f".a.md.{number}.tmp", f"after {number}\n")
        temporary.rename(live.vault.root / "a.md")
    await live.agrees()
    assert await live.vault.value("SELECT id FROM file WHERE path = 'a.md'") == identity


async def test_a_save_in_the_manner_of_vim_is_an_edit(live: Watched) -> None:
    """The note is renamed to a backup, written anew under its name, and the backup removed."""
    file = live.vault.write("a.md", "before\n")
    await live.agrees()
    identity = await live.vault.value("SELECT id FROM file WHERE path = 'a.md'")
    for number in range(3):
        probe = live.vault.write("4913", "")
        probe.unlink()
        file.rename(live.vault.root / "a.md~")
        live.vault.write("a.md", f"after {number}\n")
        (live.vault.root / "a.md~").unlink()
        await live.agrees()
    assert await live.vault.value("SELECT id FROM file WHERE path = 'a.md'") == identity
    assert await live.vault.found("before") == []


async def test_touch_and_chmod_index_nothing_anew(live: Watched) -> None:
    file = live.vault.root / "first.md"
    before = await live.vault.value("SELECT indexed_at FROM file")
    os.utime(file, (1_600_000_000, 1_600_000_000))
    file.chmod(0o600)
    await eventually(lambda: live.vault.rows("SELECT 1 FROM file WHERE mtime_ns = %s", 1_600_000_000 * 10**9))
    await live.agrees()
    assert await live.vault.value("SELECT indexed_at FROM file") == before


async def test_deletions_are_noticed_also_many_at_once(live: Watched) -> None:
    for number in range(700):
        live.vault.write(f"{number % 7}/{number}.md", f"word{number}\n")
    await live.agrees()
    shutil.rmtree(live.vault.root / "3")
    for number in range(0, 700, 7):
        (live.vault.root / f"0/{number}.md").unlink()
    await live.agrees()
    assert len(await live.vault.in_index()) == 501


async def test_a_gitignore_that_is_written_takes_effect(live: Watched) -> None:
    live.vault.write("drafts/a.md", "a draft\n")
    await live.agrees()
    live.vault.write(".gitignore", "drafts/\n")
    await eventually(lambda: _is(live, ["first.md"]))
    (live.vault.root / ".gitignore").unlink()
    await live.agrees()


async def test_links_to_folders_are_not_followed_whatever_the_kernel_says(
    live: Watched, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "far.md").write_text("far\n")
    (live.vault.root / "link").symlink_to(outside)
    (live.vault.root / "loop").symlink_to(live.vault.root)
    async with watched(live.vault, watch="events"):  # stands by: the first still holds the folder
        (outside / "far.md").write_text("far away\n")
        live.vault.write("end.md", "end\n")
        await eventually(lambda: _is(live, ["end.md", "first.md"]))


async def test_links_that_stood_before_the_watcher_are_not_followed_either(
    vault: Vault, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (vault.root / "link").symlink_to(outside)
    (vault.root / "loop").symlink_to(vault.root)
    async with watched(vault) as held:
        await held.mode(WatchMode.EVENTS)
        for number in range(3):
            (outside / f"{number}.md").write_text("far away\n")
        vault.write("end.md", "end\n")
        await eventually(lambda: _is(held, ["end.md"]))
        assert {job.path for job in await vault.jobs()} == {"end.md"}


async def test_a_repository_above_the_root_hides_nothing(vault: Vault) -> None:
    """The usual filter of watchfiles drops every path with such a name anywhere in it."""
    root = vault.root.parent / "node_modules" / ".git" / "notes"
    root.mkdir(parents=True)
    await vault.notes.remove_folder(vault.folder.id)
    vault.folder = await vault.notes.add_folder(root)
    async with watched(vault) as held:
        await held.mode(WatchMode.EVENTS)
        vault.write("build/a.md", "seen\n")
        await held.agrees()
        assert sorted(await vault.in_index()) == ["build/a.md"]


async def test_the_heart_beats_while_nothing_happens(live: Watched) -> None:
    first = live.state.beat
    assert first is not None
    assert datetime.now(UTC) - first < timedelta(seconds=10)
    await eventually(lambda: live.state.beat is not None and live.state.beat > first)
    rows = await live.vault.rows("SELECT mode, reason, now() - beat_at < interval '20 s' FROM watcher")
    assert rows == [("events", "", True)]
    assert (await live.notes.status()).watchers == (live.state,)


async def test_what_happened_while_nobody_watched_is_made_up_for(vault: Vault) -> None:
    for path in ("kept.md", "changed.md", "deleted.md"):
        vault.write(path, f"{path}\n")
    async with watched(vault) as held:
        await held.agrees()
    vault.write("changed.md", "another text\n")
    vault.write("new.md", "new\n")
    (vault.root / "deleted.md").unlink()
    async with watched(vault) as held:
        await held.agrees()
    assert sorted(await vault.in_index()) == ["changed.md", "kept.md", "new.md"]


async def test_a_folder_added_while_watching_is_watched_and_one_removed_no_more(
    live: Watched, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("over here\n")
    folder = await live.vault.notes.add_folder(other)  # by another door, as another process would
    await eventually(lambda: live.vault.found("here"))
    await live.vault.notes.remove_folder(folder.id)
    await eventually(lambda: folder.id not in live.notes._watchers)
    assert live.services.faults == {}


async def _is(live: Watched, paths: list[str]) -> bool:
    return sorted(await live.vault.in_index()) == paths
