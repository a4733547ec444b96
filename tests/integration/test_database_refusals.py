"""Real servers that cannot be used are refused in a sentence that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from engine.database import Database
from engine.errors import DatabaseError, DatabaseRefused, DatabaseUnavailable
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Server

SECRET = "hunter2-geheim"


@pytest.fixture
def ann(server: Server) -> Iterator[str]:
    """A role without rights, which owns a database of the same name."""
    server.run("CREATE ROLE ann LOGIN")
    server.run("CREATE DATABASE ann OWNER ann TEMPLATE template0")
    yield server.url("ann", user="ann")
    server.drop("ann")
    server.run("DROP ROLE ann")


async def open_url(url: str, environment: dict[str, str], folder: Path) -> Database:
    settings = Settings.load({**environment, "DATABASE_URL": url}, cwd=folder)
    return await Database.open(settings, application="tests")


async def test_another_encoding(server: Server, environment: dict[str, str], tmp_path: Path) -> None:
    server.run(
        "CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LOCALE 'C' LOCALE_PROVIDER libc"
    )
    try:
        with pytest.raises(DatabaseRefused, match="encoding SQL_ASCII; UTF8 is needed"):
            await open_url(server.url("ascii"), environment, tmp_path)
    finally:
        server.drop("ascii")


async def test_a_locale_of_ascii_letters_is_taken_with_a_warning(
    server: Server, environment: dict[str, str], tmp_path: Path
) -> None:
    server.run("CREATE DATABASE plain TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER libc")
    try:
        database = await open_url(server.url("plain"), environment, tmp_path)
        assert any("ASCII letters only" in warning for warning in database.info.warnings)
        await database.close()
    finally:
        server.drop("plain")


async def test_a_read_only_server(server: Server, environment: dict[str, str], tmp_path: Path) -> None:
    server.run("CREATE DATABASE standby TEMPLATE template0")
    server.run("ALTER DATABASE standby SET default_transaction_read_only = on")
    try:
        with pytest.raises(DatabaseRefused, match="read-only"):
            await open_url(server.url("standby"), environment, tmp_path)
    finally:
        server.drop("standby")


async def test_a_login_that_may_not_take_on_the_engine_role_learns_what_an_administrator_must_do(
    server: Server, ann: str, environment: dict[str, str], tmp_path: Path
) -> None:
    with pytest.raises(DatabaseRefused, match="login ann may not set the database at ann@") as caught:
        await open_url(ann, environment, tmp_path)
    statements = caught.value.remedy.partition(": ")[2]
    assert statements == 'CREATE EXTENSION vector; GRANT noctuary_engine TO "ann";'
    server.run(statements, "ann")
    database = await open_url(ann, environment, tmp_path)
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT session_user::text, current_user::text")).fetchone()
    assert row == ("ann", "noctuary_engine")
    await database.close()


async def test_pgvector_in_a_schema_of_its_own_is_found(
    server: Server, ann: str, environment: dict[str, str], tmp_path: Path
) -> None:
    server.run('CREATE SCHEMA "my ext"', "ann")
    server.run('CREATE EXTENSION vector SCHEMA "my ext"', "ann")
    server.run('GRANT USAGE ON SCHEMA "my ext" TO PUBLIC', "ann")
    server.run("GRANT noctuary_engine TO ann")
    database = await open_url(ann, environment, tmp_path)
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT '[1,2]'::vector <=> '[1,2]'")).fetchone()
    assert row == (0.0,)
    await database.close()


async def test_the_engine_role_itself_may_not_log_in_by_address(
    server: Server, environment: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    url = database_url.replace("noctuary_admin@", "noctuary_engine@")
    with pytest.raises(DatabaseRefused, match="must not own the tables"):
        await open_url(url, environment, tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1:1", "noctuary.invalid:5432"])
async def test_a_server_that_is_not_there(host: str, environment: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match="cannot be reached") as caught:
        await open_url(f"postgresql://ann:{SECRET}@{host}/notes?connect_timeout=2", environment, tmp_path)
    assert SECRET not in str(caught.value)
    assert f"ann@{host}/notes" in caught.value.message


async def test_a_database_that_is_not_there(
    server: Server, environment: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.url("no_such").replace("noctuary_admin@", f"noctuary_admin:{quote(SECRET)}@")
    with pytest.raises(DatabaseError, match='"no_such" does not exist') as caught:
        await open_url(url, environment, tmp_path)
    assert SECRET not in str(caught.value)
    assert SECRET not in caplog.text


async def test_a_refused_opening_leaves_no_connection_behind(
    server: Server, environment: dict[str, str], database_url: str, tmp_path: Path
) -> None:
    with psycopg.connect(database_url) as direct:
        direct.execute("INSERT INTO noctuary.migration VALUES (9999, 'future', 'x')")
        name = direct.info.dbname
    with pytest.raises(DatabaseError):
        await open_url(database_url, environment, tmp_path)
    assert server.run(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'") == [(0,)]
