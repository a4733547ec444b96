"""The watcher when things go wrong: it goes on, and says how it goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from contextlib import aclosing, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import psutil
import psycopg
import pytest

from engine.notes import events, watcher
from engine.notes.events import EventsFailed
from engine.notes.hints import Hints
from engine.notes.model import WatchMode
from tests.integration.other_engine import OtherEngine
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

    from tests.integration.vault import Vault
    from tests.integration.watching import Watched


async def test_a_name_that_is_not_utf8_does_not_end_the_watch(vault: Vault) -> None:
    """watchfiles dies of it: the watcher is started again, and polls when that does not help."""
    async with watched(vault, poll_interval=0.2) as live:
        for number in count():
            bad = vault.root / os.fsdecode(b"\xff%d.md" % number)
            bad.write_text("x\n")
            vault.write("good.md", f"word{number} after it\n")
            await live.agrees()
            if live.state.mode is WatchMode.POLLING or number == 40:
                break
        assert live.state.reason.startswith("file events failed repeatedly: Unable to decode path")
        assert live.services.faults == {}
    assert await vault.found(f"word{number}") == ["good.md"]


async def test_an_event_watcher_that_keeps_dying_is_replaced_by_polling_and_it_is_said(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refusing(*_: object, **__: object) -> AsyncIterator[None]:
        raise EventsFailed('OS file watch limit reached. about ["/notes"]')
        yield

    monkeypatch.setattr(events, "changes", refusing)
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


def listeners(pid: int | None = None) -> list[psutil.Process]:
    """The processes that listen for events, started by this process or another."""
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):  # or a zombie, which is one of these
            if any(part.endswith("listening.py") for part in child.cmdline()):
                found.append(child)
    return found


async def test_a_listener_that_is_killed_is_started_again_and_none_is_left_behind(vault: Vault) -> None:
    async with watched(vault) as held:
        (first,) = await eventually(listeners)
        first.kill()
        await eventually(lambda: [each for each in listeners() if each.pid != first.pid])
        vault.write("a.md", "after its death\n")
        await held.agrees()
        await held.mode(WatchMode.EVENTS)
        assert held.services.faults == {}
    assert listeners() == []


async def test_a_listener_ends_with_its_killed_parent(vault: Vault, environment: dict[str, str]) -> None:
    other = await OtherEngine.start(
        {**environment, "DATABASE_URL": vault.settings.database_url or ""}, "watch"
    )
    (child,) = await eventually(lambda: listeners(other.pid))
    await other.kill()
    await eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


async def test_placing_many_watches_does_not_hold_up_the_loop(vault: Vault) -> None:
    """Hidden folders are no notes, and the kernel's watches are placed on them all the same."""
    for number in range(12_000):
        (vault.root / f".git/{number % 100}/{number}").mkdir(parents=True)
    lags: list[float] = []

    async def ticking() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(0.005)
            lags.append(time.perf_counter() - start)

    async with aclosing(events.changes(vault.root, beat=0.1)) as batches:
        ticks = asyncio.create_task(ticking())
        assert await anext(batches) == []
        ticks.cancel()
    assert max(lags) < 0.2


async def test_a_burst_is_one_survey_of_the_root_and_none_of_its_folders(
    live: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = live.notes._watchers[live.vault.folder.id]
    monkeypatch.setattr(watcher, "BURST", 2)
    for number in range(3):
        (live.vault.root / f"{number}").mkdir()
    await live.agrees()
    held._due.clear()
    await held._hints([str(live.vault.root / f"{number}") for number in range(3)])
    assert {below: len(times) for below, times in held._due.items()} == {"": 1}


async def test_a_missing_root_is_written_down_once(
    live: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "BEAT", 0.02)
    live.vault.root.rename(tmp_path / "away")
    await live.mode(WatchMode.MISSING)
    await eventually(lambda: live.vault.rows("SELECT 1 FROM watcher WHERE mode = 'missing'"))
    written = await live.vault.value("SELECT beat_at FROM watcher")
    for _ in range(5):
        before = live.state.beat
        await eventually(lambda seen=before: live.state.beat != seen)
    assert await live.vault.value("SELECT beat_at FROM watcher") == written
    (tmp_path / "away").rename(live.vault.root)
    await live.mode(WatchMode.EVENTS)


async def test_events_are_tried_again_and_nobody_is_told_of_another_root(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "noctuary.watcher")
    real = events.changes
    deaths = iter(range(watcher.DEATHS))

    def mortal(root: Path, *, beat: float) -> AsyncGenerator[list[tuple[str, str]], None]:
        async def dying() -> AsyncGenerator[list[tuple[str, str]], None]:
            raise EventsFailed("no more watches")
            yield []

        return real(root, beat=beat) if next(deaths, None) is None else dying()

    monkeypatch.setattr(events, "changes", mortal)
    monkeypatch.setattr(watcher, "DEATH_PAUSE", 0.0)
    async with watched(vault, poll_interval=0.05, reconcile_interval=0.5) as held:
        await eventually(lambda: "file events are tried again" in caplog.text)
        await held.mode(WatchMode.EVENTS)
    assert "was replaced" not in caplog.text


async def test_who_stands_by_opens_no_connection_to_see_that_it_still_stands_by(
    live: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    looked: list[str] = []
    database = live.vault.database
    connect, try_lock = database._connect, database.try_lock

    async def connecting(application: str) -> Any:
        opened.append(application)
        return await connect(application)

    async def trying(name: str) -> Any:
        looked.append(name)
        return await try_lock(name)

    monkeypatch.setattr(database, "_connect", connecting)
    monkeypatch.setattr(database, "try_lock", trying)
    monkeypatch.setattr(watcher, "ELECTION_WAIT", 0.01)
    async with watched(live.vault) as second:
        await second.mode(WatchMode.ELSEWHERE)
        await eventually(lambda: len(looked) > 5)
        assert opened == []


async def test_a_watcher_that_fell_is_stopped_until_it_runs_again(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with watched(vault) as live:
        await live.mode(WatchMode.EVENTS)
        with monkeypatch.context() as patch:

            async def full(*_: object, **__: object) -> None:
                raise OSError("No space left on device")

            patch.setattr(watcher.drift, "reconcile", full)
            vault.write("a/b.md", "a new folder wants a survey\n")
            await eventually(lambda: live.services.faults)
            assert live.state.mode is WatchMode.STOPPED
        await live.mode(WatchMode.EVENTS)
        await live.agrees()
