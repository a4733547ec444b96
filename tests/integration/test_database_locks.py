"""A lock has one holder, and passes on when its holder is gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.database import Database, locks
from tests.integration.database_processes import User
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.settings import Settings
    from tests.conftest import Server


async def test_one_holder_at_a_time(database: Database, settings: Settings) -> None:
    other = await Database.open(settings, application="another")
    first = await database.try_lock("watch /notes")
    assert first
    assert await other.try_lock("watch /notes") is None
    assert await database.try_lock("watch /notes") is None
    second = await other.try_lock("watch /other")
    assert second
    await first.release()
    await first.release()
    third = await other.try_lock("watch /notes")
    assert third
    await other.close()
    assert await database.try_lock("watch /notes")


async def test_names_with_anything_in_them(database: Database) -> None:
    for name in ("", "it's %s", "夢\n", "x" * 5000):
        assert await database.try_lock(name)
        assert await database.try_lock(name) is None


async def test_the_lock_of_a_killed_process_is_taken_over(
    database: Database, environment: dict[str, str], database_url: str
) -> None:
    user = await User.start({**environment, "DATABASE_URL": database_url})
    assert user.greeting == "open"
    assert await user.ask("lock watch") == "taken"
    assert await database.try_lock("watch") is None
    await user.kill()
    lock = await eventually(lambda: database.try_lock("watch"))
    assert lock


async def test_a_lost_lock_is_noticed(database: Database, server: Server) -> None:
    lock = await database.try_lock("watch")
    assert lock
    assert not lock.lost.is_set()
    server.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'tests lock'"
    )
    await asyncio.wait_for(lock.lost.wait(), 10)
    await lock.release()
    assert await database.try_lock("watch")


@pytest.mark.parametrize("end", [None, psycopg.InterfaceError("closed"), OSError("bad descriptor")])
async def test_a_lock_whose_watch_ends_in_any_other_way_is_lost_too(
    database: Database, monkeypatch: pytest.MonkeyPatch, end: Exception | None
) -> None:
    async def ending(_: object) -> AsyncIterator[str]:
        if end:
            raise end
        return
        yield

    monkeypatch.setattr(locks, "arrivals", ending)
    lock = await database.try_lock("watch")
    assert lock
    async with asyncio.timeout(5):
        await lock.lost.wait()
    await lock.release()


async def test_a_released_lock_is_not_lost(database: Database) -> None:
    lock = await database.try_lock("watch")
    assert lock
    await lock.release()
    assert not lock.lost.is_set()


async def test_closing_the_database_lets_its_locks_go(database: Database, settings: Settings) -> None:
    other = await Database.open(settings, application="another")
    lock = await other.try_lock("watch")
    assert lock
    await other.close()
    assert not lock.lost.is_set()
    assert await eventually(lambda: database.try_lock("watch"))
