"""One embedded server a test session, one fresh database a test.

The server is the program's own, in a temporary folder, run through the program's own code; only
fsync is off. A test's database is copied from a migrated template, which takes a few milliseconds.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
import pytest

from engine.database import Database
from engine.database.embedded import tuning
from engine.database.embedded.server import EmbeddedServer
from engine.database.model import silent
from engine.database.setup import prepare
from engine.models.embedding import bundled
from engine.settings import Settings
from tests.asking import llm, quick  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

# What runs in a shell's background ignores Ctrl+C, and so would every process that a test starts and
# interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

TEMPLATE = "noctuary_template"
_numbers = itertools.count(1)


class Server:
    """The session's server: addresses of its databases, and an administrator's connection."""

    def __init__(self, embedded: EmbeddedServer) -> None:
        self.embedded = embedded

    def url(self, database: str, user: str = "noctuary_admin") -> str:
        """`DATABASE_URL` of one of its databases."""
        host = self.embedded.address().params["host"]
        return f"postgresql://{user}@/{quote(database)}?host={quote(host, safe='')}"

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Execute as the administrator, outside any test's database."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self, database: str, template: str = TEMPLATE) -> str:
        """A copy of the template; its address."""
        self.run(f'CREATE DATABASE "{database}" TEMPLATE "{template}" STRATEGY FILE_COPY')
        return self.url(database)

    def drop(self, database: str) -> None:
        self.run(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')


async def _prepared(data: Path) -> EmbeddedServer:
    embedded = EmbeddedServer(data)
    await embedded.join()
    try:
        Server(embedded).create(TEMPLATE, template="template0")
        await prepare(embedded.address(TEMPLATE), "tests", silent)
    except BaseException:
        await embedded.leave()
        raise
    return embedded


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The embedded server of this session, with a migrated template database."""
    with pytest.MonkeyPatch.context() as patch:
        lasting = tuning.arguments()
        hasty = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum_naptime=1h"]
        patch.setattr(tuning, "arguments", lambda: lasting + hasty)
        embedded = asyncio.run(_prepared(tmp_path_factory.mktemp("server")))
    yield Server(embedded)
    asyncio.run(embedded.leave())


@pytest.fixture(scope="session", autouse=True)
def model_loaded_once() -> Iterator[None]:
    """The engines of one process share the bundled model, which takes each a third of a second to load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundled, "_open_session", cache(bundled._open_session))
        yield


@pytest.fixture
def database_url(server: Server) -> Iterator[str]:
    """The address of a fresh, migrated database."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    yield server.create(name)
    server.drop(name)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment with folders of its own: a fresh installation that nothing outside reaches."""
    names = ("DATA", "CONFIG", "STATE", "CACHE")
    folders = {f"XDG_{name}_HOME": str(tmp_path / "xdg" / name.lower()) for name in names}
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "LANG": "C.UTF-8", **folders}


@pytest.fixture
def settings(environment: dict[str, str], database_url: str, tmp_path: Path) -> Settings:
    """Settings of a fresh installation that uses a fresh database of the session's server."""
    return Settings.load({**environment, "DATABASE_URL": database_url}, cwd=tmp_path)


@pytest.fixture
async def database(settings: Settings) -> AsyncIterator[Database]:
    """An open, fresh database."""
    opened = await Database.open(settings, application="tests")
    yield opened
    await opened.close()
