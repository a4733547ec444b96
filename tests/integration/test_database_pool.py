"""Connections: who they are, and what cancelling and losing them does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engine.errors import DatabaseUnavailable
from tests.support import eventually

if TYPE_CHECKING:
    from engine.database import Database
    from tests.conftest import Server


async def one(database: Database, statement: str) -> Any:
    async with database.connection() as connection:
        row = await (await connection.execute(statement.encode())).fetchone()
    return row[0] if row else None


async def test_works_as_a_role_that_is_neither_superuser_nor_owner(database: Database) -> None:
    async with database.connection() as connection:
        row = await (
            await connection.execute(
                "SELECT current_user::text, rolsuper, rolbypassrls, current_schemas(false)::text[],"
                " EXISTS (SELECT FROM pg_class WHERE relowner = r.oid)"
                " FROM pg_roles r WHERE rolname = current_user"
            )
        ).fetchone()
        assert row == ("noctuary_engine", False, False, ["noctuary", "public"], False)
        await connection.execute("RESET ROLE")
        assert await (await connection.execute("SELECT current_user::text")).fetchone() == (
            "noctuary_engine",
        )


async def test_the_info_tells_the_server_in_use(database: Database) -> None:
    info = database.info
    assert info.version.startswith("18.")
    assert info.pgvector.startswith("0.8.")
    assert not info.embedded  # the tests come by DATABASE_URL
    assert info.location.startswith("noctuary_admin@/")
    assert info.warnings == ()


async def test_a_connection_commits_by_itself_and_a_transaction_all_or_nothing(database: Database) -> None:
    insert = "INSERT INTO folder (path) VALUES (%s)"
    async with database.connection() as connection:
        await connection.execute(insert, ["/first"])
        with pytest.raises(psycopg.errors.UniqueViolation):
            await connection.execute(insert, ["/first"])

    async def fail_late() -> None:
        async with database.transaction() as connection:
            await connection.execute(insert, ["/second"])
            raise LookupError

    with pytest.raises(LookupError):
        await fail_late()
    async with database.transaction() as connection:
        await connection.execute(insert, ["/third"])
    assert await one(database, "SELECT array_agg(path ORDER BY path) FROM folder") == ["/first", "/third"]


async def test_cancelling_a_task_cancels_its_query_in_the_server(database: Database, server: Server) -> None:
    name = await one(database, "SELECT current_database()")
    task = asyncio.create_task(one(database, "SELECT pg_sleep(600)"))
    await eventually(lambda: sleepers(server, name) == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: sleepers(server, name) == 0)
    assert await one(database, "SELECT 1") == 1


def sleepers(server: Server, name: str) -> int:
    """Queries that sleep in the database `name` now."""
    sleeping = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(%' AND state = 'active'"
    return len(server.run(f"{sleeping} AND datname = '{name}'"))


async def test_a_connection_lost_in_use_is_an_error_of_the_family_and_the_next_one_works(
    database: Database, server: Server
) -> None:
    name = await one(database, "SELECT current_database()")
    task = asyncio.create_task(one(database, "SELECT pg_sleep(600)"))
    await eventually(lambda: sleepers(server, name) == 1)
    terminate(server, name)
    with pytest.raises(DatabaseUnavailable, match="went away in the midst"):
        await task
    assert await one(database, "SELECT 1") == 1


async def test_connections_lost_while_idle_are_not_noticed(database: Database, server: Server) -> None:
    name = await one(database, "SELECT current_database()")
    for _ in range(3):
        terminate(server, name)
        assert await one(database, "SELECT 1") == 1


def terminate(server: Server, name: str) -> None:
    server.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")


async def test_more_tasks_than_connections_wait_for_their_turn(database: Database) -> None:
    assert await asyncio.gather(
        *(one(database, f"SELECT {n} FROM pg_sleep(0.005)") for n in range(100))
    ) == list(range(100))
    backends = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    assert await one(database, backends) <= 9  # the pool and the feed


async def test_a_closed_database_says_so_and_closes_again(database: Database) -> None:
    changes = database.feed.subscribe()
    await database.close()
    await database.close()
    assert [change async for change in changes] == []
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await one(database, "SELECT 1")
