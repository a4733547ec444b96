"""Migrations on a real database: in order, once, all or nothing."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.database import Database
from engine.database.address import Address
from engine.database.connecting import Connection, connect
from engine.database.migrate import apply, load
from engine.database.model import silent
from engine.database.setup import prepare
from engine.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from engine.settings import Settings
    from tests.conftest import Server


@pytest.fixture
def bare(server: Server) -> Iterator[str]:
    """An empty database."""
    yield server.create("bare", template="template0")
    server.drop("bare")


@pytest.fixture
async def connection(bare: str) -> AsyncIterator[Connection]:
    address = Address.of_url(bare)
    async with await connect(address, address.admin("tests")) as connection:
        await connection.execute("CREATE SCHEMA noctuary")
        yield connection


def write(folder: Path, number: int, statements: str) -> None:
    (folder / f"{number:04}_m{number}.sql").write_text(statements)
    load.cache_clear()


async def test_files_are_applied_in_order_and_once(connection: Connection, tmp_path: Path) -> None:
    write(tmp_path, 2, "INSERT INTO t SELECT 'it''s 100%'; INSERT INTO t SELECT 'again';")
    write(tmp_path, 1, "CREATE TABLE t (x text);")
    states: list[str] = []
    assert await apply(connection, states.append, tmp_path) == 2
    assert states == ["migrating 1 of 2", "migrating 2 of 2"]
    assert await apply(connection, states.append, tmp_path) == 0
    write(tmp_path, 3, "INSERT INTO t SELECT 'third';")
    assert await apply(connection, states.append, tmp_path) == 1
    rows = await (await connection.execute("SELECT x FROM noctuary.t")).fetchall()
    assert [row[0] for row in rows] == ["it's 100%", "again", "third"]


async def test_a_migration_that_fails_leaves_nothing_behind(connection: Connection, tmp_path: Path) -> None:
    write(tmp_path, 1, "CREATE TABLE kept ();")
    write(tmp_path, 2, "CREATE TABLE lost (); SELECT 1/0;")
    with pytest.raises(SchemaError, match=r"2 m2 failed and was rolled back: division by zero"):
        await apply(connection, silent, tmp_path)
    row = await (
        await connection.execute("SELECT to_regclass('kept')::text, to_regclass('lost')::text")
    ).fetchone()
    assert row == ("kept", None)
    # Recorded in the same transaction: what cannot be recorded did not happen either.
    write(tmp_path, 2, "CREATE TABLE lost (); INSERT INTO noctuary.migration VALUES (2, 'm2', 'x');")
    with pytest.raises(SchemaError, match="2 m2 failed"):
        await apply(connection, silent, tmp_path)
    write(tmp_path, 2, "CREATE TABLE lost ();")
    assert await apply(connection, silent, tmp_path) == 1


async def test_an_altered_migration_is_refused(settings: Settings, server: Server, database_url: str) -> None:
    with psycopg.connect(database_url) as direct:
        direct.execute("UPDATE noctuary.migration SET checksum = 'other' WHERE number = 1")
    with pytest.raises(SchemaError, match="not the one that was applied"):
        await Database.open(settings, application="tests")


async def test_a_newer_schema_is_refused_and_left_alone(settings: Settings, database_url: str) -> None:
    with psycopg.connect(database_url) as direct:
        direct.execute("INSERT INTO noctuary.migration VALUES (9999, 'future', 'x')")
    with pytest.raises(SchemaError, match="newer program"):
        await Database.open(settings, application="tests")


async def test_of_many_that_open_at_once_one_migrates(bare: str) -> None:
    states: list[str] = []
    address = Address.of_url(bare)
    results = await asyncio.gather(*(prepare(address, "tests", states.append) for _ in range(5)))
    assert {info.pgvector for _, info in results} == {results[0][1].pgvector}
    assert len([state for state in states if state.startswith("migrating")]) == len(load())
    with psycopg.connect(bare) as direct:
        assert direct.execute("SELECT count(*) FROM noctuary.migration").fetchone() == (len(load()),)


async def test_the_engine_may_neither_alter_the_schema_nor_the_list_of_migrations(database: Database) -> None:
    for statement in (
        "CREATE TABLE noctuary.x ()",
        "UPDATE migration SET name = 'x'",
        "DROP TABLE folder",
        "ALTER TABLE folder ADD x int",
    ):
        async with database.connection() as connection:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await connection.execute(statement.encode())


def test_migrations_name_no_schema_of_their_own() -> None:
    """What they make lands in the schema that the engine role may use."""
    for migration in load():
        assert not re.search(
            rb"\bCREATE TABLE (IF NOT EXISTS )?public\.", migration.statements, re.IGNORECASE
        )
