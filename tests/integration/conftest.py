"""A vault of notes on the disk, with the parts of the engine that index it, run step by step."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engine.notes import Notes
from engine.notes.model import WatchMode
from engine.services import Services
from tests.integration import bulk
from tests.integration.line import NOTES, Line
from tests.integration.shell import ROOT, Shell
from tests.integration.vault import AttentiveEmbedder, Vault
from tests.integration.watching import watched

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from engine.database import Database
    from engine.settings import Settings
    from tests.conftest import Server
    from tests.integration.watching import Watched


@pytest.fixture(scope="session")
def model() -> Iterator[AttentiveEmbedder]:
    """The real model, loaded at most once a session."""
    embedder = AttentiveEmbedder()
    yield embedder
    asyncio.run(embedder.close())


@pytest.fixture
def embedder(model: AttentiveEmbedder) -> AttentiveEmbedder:
    """The real model, with nothing asked of it yet."""
    model.asked.clear()
    return model


@pytest.fixture
async def vault(
    database: Database, settings: Settings, embedder: AttentiveEmbedder, tmp_path: Path
) -> AsyncIterator[Vault]:
    """An empty folder of notes that has been added, and no service running."""
    services = Services()
    notes = Notes(database, embedder, settings, services)
    await notes.prepare()
    root = tmp_path / "notes"
    root.mkdir()
    yield Vault(database, notes, settings, await notes.add_folder(root))
    await services.stop()


@pytest.fixture
async def live(vault: Vault) -> AsyncIterator[Watched]:
    """A watched vault with one note in it, on events."""
    vault.write("first.md", "the first note\n")
    async with watched(vault) as held:
        await held.mode(WatchMode.EVENTS)
        yield held


@pytest.fixture(scope="session")
def bulk_url(server: Server) -> str:
    """The address of a database of 50,000 passages that no test changes."""
    return bulk.fill(server, f"bulk_{os.getpid()}")


@pytest.fixture
async def bulk_connection(bulk_url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection to it as the engine has one, in a transaction that is rolled back."""
    async with await psycopg.AsyncConnection.connect(bulk_url) as connection:
        await connection.execute("SET ROLE noctuary_engine")
        await connection.execute("SET search_path = noctuary, public")
        yield connection
        await connection.rollback()


@pytest.fixture
def noctuary(
    environment: dict[str, str],
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Line:
    """The commands, with three notes in a folder that is not indexed yet."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("NOCTUARY_DATABASE_URL", database_url)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    line = Line(tmp_path / "notes", capsys)
    for path, text in NOTES.items():
        line.write(path, text)
    return line


@pytest.fixture
def shell(environment: dict[str, str], database_url: str, tmp_path: Path) -> Iterator[Shell]:
    """Commands as processes, in which every warning is an error."""
    env = {
        **environment,
        "NOCTUARY_DATABASE_URL": database_url,
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "TERM": "xterm-256color",
    }
    work = tmp_path / "work"
    work.mkdir()
    started = Shell(env, work)
    yield started
    started.stop()
