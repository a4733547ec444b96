"""The watcher when things go wrong: it goes on, and says how it goes on."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.notes import watcher
from engine.notes.hints import Hints
from engine.notes.model import WatchMode
from tests.integration.other_engine import OtherEngine
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.vault import Vault
    from tests.integration.watching import Watched


@pytest.fixture
async def live(vault: Vault) -> AsyncIterator[Watched]:
    vault.write("first.md", "the first note\n")
    async with watched(vault) as held:
        await held.mode(WatchMode.EVENTS)
        yield held


async def test_a_name_that_is_not_utf8_does_not_end_the_watch(vault: Vault) -> None:
    """watchfiles dies of it: the watcher is started again, and polls when that does not help."""
    async with watched(vault, poll_interval=0.2) as live:
        for number in range(5):
            bad = vault.root / os.fsdecode(b"\xff%d.md" % number)
            bad.write_text("x\n")
            vault.write("good.md", f"word{number} after it\n")
            await live.agrees()
        await live.mode(WatchMode.POLLING)
        assert live.state.reason.startswith("file events failed repeatedly: Unable to decode path")
        assert live.services.faults == {}
    assert await vault.found("word4") == ["good.md"]


async def test_an_event_watcher_that_keeps_dying_is_replaced_by_polling_and_it_is_said(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    import watchfiles

    def refusing(*_: object, **__: object) -> None:
        raise OSError('OS file watch limit reached. about ["/notes"]')

    monkeypatch.setattr(watchfiles, "awatch", refusing)
    async with watched(vault, poll_interval=0.1) as held:
        await held.mode(WatchMode.POLLING)
        assert "OS file watch limit reached" in held.state.reason
        vault.write("a.md", "found by polling\n")
        await held.agrees()
        assert await vault.rows("SELECT mode, reason FROM watcher") == [("polling", held.state.reason)]


async def test_polling_finds_every_kind_of_change(vault: Vault, tmp_path: Path) -> None:
    async with watched(vault, watch="polling", poll_interval=0.1) as held:
        assert (held.state.mode, held.state.reason) == (WatchMode.POLLING, "set by `watch`")
        vault.write("a/b/c.md", "deep\n")
        vault.write("d.md", "flat\n")
        await held.agrees()
        (vault.root / "a").rename(vault.root / "e")
        vault.write("d.md", "edited\n")
        await held.agrees()
        (vault.root / "d.md").unlink()
        await held.agrees()
        first = held.state.beat
        await eventually(lambda: held.state.beat != first)


@pytest.mark.parametrize("how", ["removed", "moved away"])
async def test_a_root_that_is_made_again_is_watched_again(live: Watched, tmp_path: Path, how: str) -> None:
    """A new folder often gets the inode of the old one: nothing but the event tells them apart."""
    for number in range(3):
        if how == "removed":
            shutil.rmtree(live.vault.root)
        else:
            live.vault.root.rename(tmp_path / f"away{number}")
        live.vault.root.mkdir()
        live.vault.write("first.md", "the first note\n")
        live.vault.write(f"sub/{number}.md", "in a new folder\n")
        await live.agrees()
    live.vault.write("last.md", "events again\n")
    await eventually(lambda: live.vault.found("events"), timeout=5)
    await live.mode(WatchMode.EVENTS)


async def test_a_missing_root_is_said_so_and_its_notes_are_kept(live: Watched, tmp_path: Path) -> None:
    live.vault.root.rename(tmp_path / "away")
    await live.mode(WatchMode.MISSING)
    assert live.state.reason == "the folder cannot be reached; its notes are kept"
    assert await live.vault.found("first") == ["first.md"]
    (tmp_path / "away").rename(live.vault.root)
    await live.mode(WatchMode.EVENTS)
    live.vault.write("second.md", "after its return\n")
    await live.agrees()


async def test_an_overflow_of_events_is_made_up_for_by_a_survey(
    live: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a burst the kernel may have dropped any part: here it drops all but the sheer number."""
    monkeypatch.setattr(watcher, "sort_hints", lambda root, paths: Hints())
    for number in range(1200):
        live.vault.write(f"{number}.md", f"word{number}\n")
    await live.agrees()


async def test_a_lost_database_connection_ends_no_watch(live: Watched) -> None:
    async with await psycopg.AsyncConnection.connect(
        live.vault.settings.database_url or "", autocommit=True
    ) as admin:
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    live.vault.write("after.md", "after the loss\n")
    await live.agrees(30)
    await live.mode(WatchMode.EVENTS, 30)


async def test_another_process_watches_and_is_followed_when_it_is_killed(
    vault: Vault, environment: dict[str, str]
) -> None:
    other = await OtherEngine.start(
        {**environment, "DATABASE_URL": vault.settings.database_url or ""}, "watch", "work"
    )
    await eventually(lambda: vault.rows("SELECT 1 FROM watcher"))
    async with watched(vault) as held:
        await held.mode(WatchMode.ELSEWHERE)
        await eventually(lambda: f":{other.pid}:" in held.state.process)
        assert held.state.holder is WatchMode.EVENTS
        assert held.state.beat is not None
        vault.write("a.md", "seen by the other\n")
        await held.agrees()
        await other.kill()
        vault.write("b.md", "seen by nobody\n")
        await held.mode(WatchMode.EVENTS, timeout=5)
        await held.agrees()


async def test_a_second_console_and_who_does_not_watch_see_that_the_first_polls(vault: Vault) -> None:
    async with watched(vault, watch="polling") as first, watched(vault) as second:
        await first.mode(WatchMode.POLLING)
        await second.mode(WatchMode.ELSEWHERE)
        await eventually(lambda: second.state.holder is WatchMode.POLLING)
        assert second.state.reason == first.state.reason == "set by `watch`"
        (seen,) = (await vault.notes.status()).watchers
        assert (seen.mode, seen.holder) == (WatchMode.ELSEWHERE, WatchMode.POLLING)
        assert seen.process == second.state.process
        assert seen.beat is not None


async def test_two_engines_never_watch_the_same_folder(vault: Vault) -> None:
    async with watched(vault) as first:
        async with watched(vault) as second:
            modes = [first.state.mode, second.state.mode]
            assert modes == [WatchMode.EVENTS, WatchMode.ELSEWHERE]
        vault.write("a.md", "still watched\n")
        await first.agrees()
