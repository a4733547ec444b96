"""A vault of notes on the disk, with the parts of the engine that index it, run step by step."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engine.database import Database
from engine.notes import Notes
from engine.notes.model import WatchMode
from engine.services import Services
from engine.settings import Settings
from tests.integration import bulk
from tests.integration.database_processes import User, servers
from tests.integration.line import NOTES, Line
from tests.integration.shell import ROOT, Shell
from tests.integration.vault import AttentiveEmbedder, Vault
from tests.integration.watching import watched
from tests.learning import mind_over
from tests.scripted_ollama import ScriptedOllama, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.conftest import Server
    from tests.integration.watching import Watched
    from tests.learning import Mind


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
async def mind(database: Database, settings: Settings, embedder: AttentiveEmbedder) -> AsyncIterator[Mind]:
    """What learns, over a fresh database and without a language model."""
    async with mind_over(database, settings, embedder) as held:
        yield held


@pytest.fixture
async def ollama() -> AsyncIterator[ScriptedOllama]:
    """A scripted server of embedding models in the test's own loop."""
    async with ScriptedOllama() as server:
        yield server


@pytest.fixture
async def birds(vault: Vault) -> Vault:
    """Three notes with vectors of the bundled model."""
    for name, text in {
        "owls": "Owls hunt at night.",
        "larks": "Larks sing.",
        "swifts": "Swifts fly.",
    }.items():
        vault.write(f"{name}.md", f"{text}\n")
    await vault.index(embed=True)
    await vault.notes.embedders.refresh()
    return vault


@pytest.fixture
def ollama_beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedOllama]:
    """A scripted server in a thread of its own, named by the environment."""
    with in_thread(ScriptedOllama()) as server:
        monkeypatch.setenv("OLLAMA_URL", server.url)
        yield server


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
def installation(
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Line:
    """The commands in an installation that has no database yet, with three notes that are not indexed."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name in ("DATABASE_URL", "NOCTUARY_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    line = Line(tmp_path / "notes", capsys)
    for path, text in NOTES.items():
        line.write(path, text)
    return line


@pytest.fixture
def noctuary(installation: Line, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Line:
    """The same on a fresh database of the session's server."""
    monkeypatch.setenv("NOCTUARY_DATABASE_URL", database_url)
    return installation


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder as a first start leaves it, stopped; tests work on copies of it."""
    data = tmp_path_factory.mktemp("made")
    settings = Settings.load({"XDG_DATA_HOME": str(data)}, cwd=data)

    async def make() -> None:
        await (await Database.open(settings, application="tests")).close()

    asyncio.run(make())
    return settings.paths.data


@pytest.fixture
def data(environment: dict[str, str]) -> Iterator[Path]:
    """The data folder of this test's installation. No server may be left in it."""
    folder = Path(environment["XDG_DATA_HOME"]) / "noctuary"
    yield folder
    left = servers(folder)
    for process in left:
        process.kill()
    assert not left


@pytest.fixture
def installed(made: Path, data: Path) -> Path:
    """The same, with a database in it."""
    shutil.copytree(made, data)
    return data


@pytest.fixture
def own(environment: dict[str, str], tmp_path: Path) -> Settings:
    """Settings of this test's installation with its embedded server."""
    return Settings.load(environment, cwd=tmp_path)


@pytest.fixture
async def users(environment: dict[str, str]) -> AsyncIterator[list[User]]:
    """Processes that the test started; the living are killed when it is over."""
    started: list[User] = []
    yield started
    for user in started:
        if user.process.returncode is None:
            await user.kill()


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
