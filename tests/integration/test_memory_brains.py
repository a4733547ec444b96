"""A transaction sees the brain it entered and nothing else, whatever the key looks like and whatever it asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import BrainError, CoreUnknown
from engine.memory import brains
from engine.memory.brains import entered, entered_by_id, everything
from engine.memory.model import BrainId, BrainKey
from tests.memory import remembered

if TYPE_CHECKING:
    from engine.database import Database

TABLES = (
    "channel",
    "entry",
    "packet",
    "packet_posting",
    "packet_embedding",
    "attribute",
    "turn_token",
    "synthesis_run",
    "cluster",
    "cluster_packet",
    "lesson",
    "lesson_source",
    "lesson_embedding",
    "memory_audit",
)

ALIKE = [
    ("test_user", "test_user1"),
    ("test_user", "test_use"),
    ("test_user", "testXuser"),
    ("test_user", "%"),
    ("test_user", "test%"),
    ("test_user", "TEST_USER"),
    ("test_user", "test_user "),
    ("test_user", "'; RESET ROLE; --"),
    ("test_user", "test_user' OR '1'='1"),
    ("caf\u00e9", "cafe\u0301"),
    ("\u212bngstrom", "\u00c5ngstrom"),
    ("", " "),
    ("*", "1"),
    ("1", "01"),
]


@pytest.mark.parametrize(("mine", "other"), ALIKE, ids=[repr(pair) for pair in ALIKE])
async def test_a_key_that_is_like_another_is_another_brain(database: Database, mine: str, other: str) -> None:
    await remembered(database, "My secret is a heron.", BrainKey(user=mine))
    async with entered(database, BrainKey(user=other)) as (connection, brain):
        assert brain == 0
        for table in TABLES:
            cursor = await connection.execute(f"SELECT count(*) FROM {table}")
            assert await cursor.fetchone() == (0,), table
    async with entered(database, BrainKey(user=mine)) as (connection, brain):
        assert brain > 0
        cursor = await connection.execute("SELECT count(*) FROM entry")
        assert await cursor.fetchone() == (1,)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(other=st.text(max_size=40))
async def test_no_name_at_all_reads_another_s(database: Database, other: str) -> None:
    await remembered(database, "My secret is a heron.", BrainKey(user="alice"))
    try:
        async with entered(database, BrainKey(user=other)) as (connection, _):
            cursor = await connection.execute("SELECT count(*) FROM entry")
            assert await cursor.fetchone() == (1 if other == "alice" else 0,)
    except BrainError:
        assert "\0" in other or any("\ud800" <= each <= "\udfff" for each in other)


@pytest.mark.parametrize("name", ["a\0b", "x" * 257, "\ud800"])
async def test_a_name_that_cannot_be_one_is_refused(database: Database, name: str) -> None:
    for key in (BrainKey(account=name), BrainKey(core=name), BrainKey(user=name)):
        with pytest.raises(BrainError):
            async with entered(database, key):
                pytest.fail("it was entered")


async def test_without_a_scope_there_are_no_rows_and_no_writes(database: Database) -> None:
    await remembered(database, "A heron.", BrainKey())
    async with database.connection() as connection:
        for table in (*TABLES, "core", "brain"):
            cursor = await connection.execute(f"SELECT count(*) FROM {table}")
            assert await cursor.fetchone() == (0,), table
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute("INSERT INTO channel (brain, name, kind) VALUES (1, 'x', 'recorded')")


@pytest.mark.parametrize("table", TABLES)
async def test_plain_sql_as_the_engine_s_role_changes_nothing_of_another_brain(
    database: Database, table: str
) -> None:
    mine = await remembered(database, "A heron.", BrainKey(user="alice"))
    async with entered(database, BrainKey(user="bob"), make=True) as (connection, brain):
        for statement in (
            f"UPDATE {table} SET brain = {brain}",
            f"DELETE FROM {table}",
            f"DELETE FROM {table} WHERE brain = {mine}",
        ):
            try:
                async with connection.transaction():
                    cursor = await connection.execute(statement)
                    assert cursor.rowcount == 0, statement
            except psycopg.errors.InsufficientPrivilege:
                pass  # it may not even try
    async with everything(database) as connection:
        cursor = await connection.execute("SELECT count(*) FROM packet WHERE brain = %s", (mine,))
        assert await cursor.fetchone() == (1,)


async def test_who_reads_everything_writes_nothing(database: Database) -> None:
    mine = await remembered(database, "A heron.", BrainKey(user="alice"))
    async with everything(database) as connection:
        cursor = await connection.execute("UPDATE packet SET confidence = 1 WHERE brain = %s", (mine,))
        assert cursor.rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(
                "INSERT INTO channel (brain, name, kind) VALUES (%s, 'x', 'recorded')", (mine,)
            )


async def test_a_scope_ends_with_its_transaction(database: Database) -> None:
    await remembered(database, "A heron.", BrainKey())
    async with database.connection() as connection:
        async with connection.transaction():
            await connection.execute("SELECT enter_brain('local', NULL, '', false)")
            cursor = await connection.execute("SELECT count(*) FROM packet")
            assert await cursor.fetchone() == (1,)
        cursor = await connection.execute("SELECT count(*) FROM packet")
        assert await cursor.fetchone() == (0,)


async def test_evidence_cannot_be_changed_by_anybody(database: Database) -> None:
    mine = await remembered(database, "A heron.", BrainKey())
    for statement in ("UPDATE entry SET text = 'x'", "DELETE FROM entry", "TRUNCATE entry CASCADE"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with entered_by_id(database, BrainId(mine)) as connection:
                await connection.execute(statement.encode())


async def test_a_row_points_at_nothing_of_another_brain(database: Database) -> None:
    theirs = await remembered(database, "A heron.", BrainKey(user="alice"))
    async with everything(database) as connection:
        cursor = await connection.execute("SELECT id, channel FROM entry WHERE brain = %s", (theirs,))
        row = await cursor.fetchone()
    assert row is not None
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        async with entered(database, BrainKey(user="bob"), make=True) as (connection, brain):
            await connection.execute(
                "INSERT INTO packet (brain, channel, input, kind, confidence, length, at)"
                " VALUES (%s, %s, %s, 'raw', 0.5, 1, now())",
                (brain, row[1], row[0]),
            )


async def test_a_core_is_made_at_the_keyboard_alone(database: Database) -> None:
    with pytest.raises(CoreUnknown, match="no core 'work'"):
        async with entered(database, BrainKey(core="work"), make=True):
            pytest.fail("it was made")
    made = await brains.add_core(database, "work", "Work")
    assert (made.slug, made.name, made.is_default) == ("work", "Work", False)
    async with entered(database, BrainKey(core="work"), make=True) as (_, brain):
        assert brain > 0
    assert [core.slug for core in await brains.cores(database)] == ["default", "work"]


async def test_accounts_share_no_core(database: Database) -> None:
    made = await brains.add_core(database, "default", account="acme")
    assert made.is_default
    await remembered(database, "A heron.", BrainKey("acme"))
    async with entered(database, BrainKey()) as (connection, _):
        cursor = await connection.execute("SELECT count(*) FROM packet")
        assert await cursor.fetchone() == (0,)
    with pytest.raises(CoreUnknown):
        async with entered(database, BrainKey("acme2")):
            pytest.fail("it was entered")
    assert [core.account for core in await brains.cores(database, "acme")] == ["acme"]


@pytest.mark.parametrize("slug", ["", "Work", "a b", "-a", "x" * 65, "é", "a\n", "a/b", "a\0"])
async def test_a_core_has_a_plain_name(database: Database, slug: str) -> None:
    with pytest.raises(BrainError):
        await brains.add_core(database, slug)


async def test_two_cores_of_one_name_are_one_too_many(database: Database) -> None:
    await brains.add_core(database, "work")
    with pytest.raises(BrainError, match="There is a core 'work' already"):
        await brains.add_core(database, "work")
