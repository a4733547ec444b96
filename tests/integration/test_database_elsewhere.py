"""A server that is not ours: another version, reached by TCP, with logins of few rights.

The wheel also brings PostgreSQL 16; it plays the part of a server that somebody else runs.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.database import Database
from engine.database.embedded import locate
from engine.database.embedded.account import account_for
from engine.errors import DatabaseRefused
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = locate._package() / "pginstall" / "bin"
pytestmark = pytest.mark.skipif(not PROGRAMS.exists(), reason="the wheel brings no second server")


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[str]:
    """`host:port` of a server with a superuser `boss`, and the logins `ann` (who may create roles)
    and `bob` (who may not), each owner of a database of the same name."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    account = account_for(folder / "data")
    os.chown(folder, account.uid, account.gid)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    initdb = [
        PROGRAMS / "initdb",
        "-D",
        folder / "data",
        "-U",
        "boss",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
        "-N",
    ]
    subprocess.run([*initdb, "--auth=trust"], check=True, capture_output=True, cwd="/", **account.identity())
    arguments = [f"port={port}", "unix_socket_directories=", "listen_addresses=127.0.0.1", "fsync=off"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                PROGRAMS / "postgres",
                "-D",
                folder / "data",
                *(part for text in arguments for part in ("-c", text)),
            ],
            **account.identity(),
            stdout=log,
            stderr=log,
            cwd="/",
        )
    try:
        wait_for(f"postgresql://boss@127.0.0.1:{port}/postgres", server)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(folder)


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    while True:
        assert server.poll() is None
        try:
            with psycopg.connect(url, autocommit=True) as boss:
                for name, right in (("ann", "CREATEROLE"), ("bob", "")):
                    boss.execute(f"CREATE ROLE {name} LOGIN {right}".encode())
                    boss.execute(f"CREATE DATABASE {name} OWNER {name}".encode())
        except psycopg.OperationalError:
            with suppress(subprocess.TimeoutExpired):
                server.wait(0.02)
        else:
            return


def as_boss(elsewhere: str, database: str, statements: str) -> None:
    with psycopg.connect(f"postgresql://boss@{elsewhere}/{database}", autocommit=True) as boss:
        boss.execute(statements.encode())


async def identity(url: str, environment: dict[str, str], folder: Path) -> tuple[str, ...]:
    settings = Settings.load({**environment, "DATABASE_URL": url}, cwd=folder)
    database = await Database.open(settings, application="tests")
    assert database.info.version.startswith("16.")
    async with database.connection() as connection:
        row = await (
            await connection.execute(
                "SELECT session_user::text, current_user::text, relowner::regrole::text"
                " FROM pg_class WHERE oid = 'folder'::regclass"
            )
        ).fetchone()
    changes = database.feed.subscribe()
    async with database.transaction() as connection:
        await connection.execute("SELECT pg_notify('noctuary', 'file')")
    assert (await anext(changes)).topic == "file"
    await database.close()
    return row or ()


async def test_a_login_that_may_create_roles_needs_an_administrator_for_the_extension_only(
    elsewhere: str, environment: dict[str, str], tmp_path: Path
) -> None:
    url = f"postgresql://ann@{elsewhere}/ann"
    with pytest.raises(DatabaseRefused) as caught:
        await identity(url, environment, tmp_path)
    assert caught.value.remedy.endswith("in that database: CREATE EXTENSION vector;")
    as_boss(elsewhere, "ann", "CREATE EXTENSION vector")
    for _ in range(2):
        assert await identity(url, environment, tmp_path) == ("ann", "noctuary_engine", "ann")


async def test_what_an_administrator_is_asked_to_run_is_enough(
    elsewhere: str, environment: dict[str, str], tmp_path: Path
) -> None:
    as_boss(elsewhere, "ann", "DROP OWNED BY noctuary_engine; DROP ROLE IF EXISTS noctuary_engine")
    url = f"postgresql://bob@{elsewhere}/bob"
    with pytest.raises(DatabaseRefused) as caught:
        await identity(url, environment, tmp_path)
    as_boss(elsewhere, "bob", caught.value.remedy.partition(": ")[2])
    assert await identity(url, environment, tmp_path) == ("bob", "noctuary_engine", "bob")


async def test_an_engine_role_of_too_many_rights_is_refused(
    elsewhere: str, environment: dict[str, str], tmp_path: Path
) -> None:
    as_boss(elsewhere, "postgres", "ALTER ROLE noctuary_engine BYPASSRLS")
    with pytest.raises(DatabaseRefused, match="undo row-level security") as caught:
        await identity(f"postgresql://bob@{elsewhere}/bob", environment, tmp_path)
    as_boss(elsewhere, "postgres", caught.value.remedy.partition(": ")[2])
    assert await identity(f"postgresql://bob@{elsewhere}/bob", environment, tmp_path)
