"""What is known of drift without walking the disk: a console that never opens Drift shows it too."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from engine.inbox import Inbox
from engine.notes.model import DriftCause, WatchMode
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.integration.vault import Vault
    from tests.integration.watching import Watched


@pytest.fixture
async def live(vault: Vault) -> AsyncIterator[Watched]:
    """A watched vault with two notes in it, on events."""
    vault.write("a.md", "owls\n")
    vault.write("sub/b.md", "robins\n")
    async with watched(vault) as held:
        await held.mode(WatchMode.EVENTS)
        await eventually(lambda: held.notes.last_drift)
        yield held


async def waiting(held: Watched) -> dict[str, int]:
    """The inbox as counts by kind."""
    items = await Inbox(held.vault.database, held.notes).items()
    return {item.kind: item.count for item in items}


def reasons(held: Watched) -> list[str]:
    report = held.notes.last_drift
    return [problem.reason for problem in report.problems] if report is not None else []


def empty(held: Watched) -> None:
    for child in held.vault.root.iterdir():
        shutil.rmtree(child) if child.is_dir() else child.unlink()


async def test_what_jobs_have_settled_waits_for_nobody(live: Watched) -> None:
    async def nothing() -> bool:
        return live.notes.last_drift is not None and live.notes.last_drift.rows == ()

    await eventually(nothing)
    assert await waiting(live) == {}


async def test_an_emptied_root_is_in_the_inbox_until_it_fills_again(live: Watched) -> None:
    empty(live)
    await eventually(lambda: reasons(live))
    assert "holds no notes any more" in reasons(live)[0]

    async def both() -> bool:
        return await waiting(live) == {"orphaned": 2, "folders": 1}

    await eventually(both)
    live.vault.write("a.md", "owls\n")
    await eventually(lambda: not reasons(live))
    await live.agrees()

    async def none() -> bool:
        return await waiting(live) == {}

    await eventually(none)


async def test_a_repaired_root_waits_no_longer(live: Watched) -> None:
    empty(live)
    await eventually(lambda: reasons(live))
    await live.notes.repair()

    async def none() -> bool:
        return await waiting(live) == {} and not reasons(live)

    await eventually(none)


async def test_a_root_that_is_away_is_in_the_inbox_until_it_is_back(live: Watched) -> None:
    away = live.vault.root.with_name("away")
    live.vault.root.rename(away)
    await eventually(lambda: "cannot be reached" in "".join(reasons(live)))
    away.rename(live.vault.root)
    await eventually(lambda: not reasons(live))


async def test_a_file_that_cannot_be_indexed_is_in_the_inbox(vault: Vault) -> None:
    (vault.root / os.fsdecode(b"caf\xe9.md")).write_text("owls\n")
    async with watched(vault) as held:
        await eventually(lambda: held.notes.last_drift and held.notes.last_drift.rows)
        assert await waiting(held) == {"not_indexed": 1}


async def test_a_second_console_shows_it_too(live: Watched) -> None:
    (live.vault.root / os.fsdecode(b"caf\xe9.md")).write_text("owls\n")
    async with watched(live.vault) as second:
        await second.mode(WatchMode.ELSEWHERE)
        await eventually(lambda: second.notes.last_drift and second.notes.last_drift.rows)
        assert await waiting(second) == {"not_indexed": 1}


async def test_what_was_queued_and_removed_again_is_no_drift(live: Watched) -> None:
    live.vault.write("new.md", "new\n")
    await live.notes.drift()
    (live.vault.root / "new.md").unlink()

    async def none() -> bool:
        report = live.notes.last_drift
        return report is not None and report.counts()[DriftCause.NOT_INDEXED] == 0

    await eventually(none)


async def test_a_report_that_says_the_same_is_not_told_again(live: Watched) -> None:
    await live.notes.drift()
    changes = live.vault.database.feed.subscribe("drift")
    await live.notes.drift()
    await live.notes._standing.refresh()
    assert changes._waiting == {}
    (live.vault.root / os.fsdecode(b"caf\xe9.md")).write_text("owls\n")
    await live.notes.drift()
    assert list(changes._waiting) == ["drift"]
