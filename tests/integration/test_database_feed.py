"""Changes arrive from every process, soon, once, and also after the server was away."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import psycopg

from engine.database import LOST, RECONNECTED, Change, Database
from tests.support import eventually

if TYPE_CHECKING:
    from engine.settings import Settings
    from tests.conftest import Server


async def notify(database: Database, *topics: str) -> None:
    async with database.transaction() as connection:
        for topic in topics:
            await connection.execute("SELECT pg_notify('noctuary', %s)", [topic])


async def test_a_change_arrives_at_once(database: Database) -> None:
    changes = database.feed.subscribe("file")
    seconds = []
    for _ in range(20):
        await notify(database, "file")
        committed = time.perf_counter()
        assert await asyncio.wait_for(anext(changes), 5) == Change("file")
        seconds.append(time.perf_counter() - committed)
    assert sorted(seconds)[10] < 0.05


async def test_only_what_was_asked_for_arrives(database: Database) -> None:
    files, every = database.feed.subscribe("file"), database.feed.subscribe()
    await notify(database, "job", "file")
    assert await asyncio.wait_for(anext(files), 5) == Change("file")
    assert {(await anext(every)).topic, (await anext(every)).topic} == {"job", "file"}


async def test_another_process_is_heard(database: Database, settings: Settings) -> None:
    changes = database.feed.subscribe("job")
    other = await Database.open(settings, application="another")
    await notify(other, "job")
    assert await asyncio.wait_for(anext(changes), 5) == Change("job")
    await other.close()


async def test_a_burst_is_told_in_few_changes(database: Database) -> None:
    changes, last = database.feed.subscribe("file"), database.feed.subscribe("last")
    for _ in range(300):
        await notify(database, "file")
    await notify(database, "last")
    assert await asyncio.wait_for(anext(last), 5) == Change("last")
    assert await anext(changes) == Change("file")
    assert not changes._waiting


async def test_a_lost_connection_comes_back_and_everybody_is_told(database: Database, server: Server) -> None:
    changes, everything = database.feed.subscribe("file"), database.feed.subscribe()
    state = database.feed.subscribe(LOST)
    async with database.connection() as connection:
        listeners = (
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE query = 'LISTEN noctuary'"
        )
        row = await (await connection.execute("SELECT current_database()")).fetchone()
    assert row
    assert server.run(f"{listeners} AND datname = '{row[0]}'") == [(True,)]
    assert await asyncio.wait_for(anext(state), 10) == Change(LOST)
    for told in (state, changes, everything):  # the others would only ask a database that is not there
        assert await asyncio.wait_for(anext(told), 10) == Change(RECONNECTED)
    await notify(database, "file")
    assert await asyncio.wait_for(anext(changes), 5) == Change("file")


async def test_nothing_piles_up_for_a_reader_that_went_away(database: Database) -> None:
    for _ in range(50):
        database.feed.subscribe()
    kept = database.feed.subscribe()
    assert list(database.feed._subscriptions) == [kept]


async def test_a_server_away_for_long_is_waited_for(
    database: Database, server: Server, database_url: str
) -> None:
    """The database is renamed: connecting fails as long as it is not named back."""
    changes = database.feed.subscribe("file")
    with psycopg.connect(database_url) as connection:
        name = connection.info.dbname
    server.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    server.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
    feed = database.feed
    lost = feed._connection
    assert lost
    await eventually(lambda: lost.closed)
    server.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    assert await asyncio.wait_for(anext(changes), 30) == Change(RECONNECTED)


async def test_closing_while_the_connection_comes_back_does_not_hang(
    settings: Settings, server: Server
) -> None:
    for pause in range(6):
        database = await Database.open(settings, application="closing")
        server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'closing%'"
        )
        for _ in range(pause * 3):
            await asyncio.sleep(0)
        await asyncio.wait_for(database.close(), 20)
