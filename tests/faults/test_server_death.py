"""The database server killed with -9 under a running engine: said so, come back to, and nothing lost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine import Engine
from engine.database import opening
from engine.database.embedded.flock import FileLock
from engine.errors import DatabaseUnavailable
from engine.notes.model import JobStatus
from engine.settings import Settings
from tests.faults.truth import idle, settle, truth
from tests.integration.database_processes import first_process, servers
from tests.integration.vault import Vault
from tests.support import eventually

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator
    from pathlib import Path

    import psutil

AWAY = (DatabaseUnavailable, psycopg.Error)
AGAIN_WITHIN = 40


@asynccontextmanager
async def opened(environment: dict[str, str], root: Path) -> AsyncIterator[tuple[Engine, Vault]]:
    """An engine on an embedded server of its own, watching and working, and its vault."""
    settings = Settings.load(environment, cwd=root.parent)
    root.mkdir(exist_ok=True)
    engine = await Engine.open(settings, application="tests")
    try:
        folder = await engine.notes.add_folder(root)
        await engine.start(embed=False)
        yield engine, Vault(engine.database, engine.notes, settings, folder)
    finally:
        await engine.close()


async def test_a_server_that_is_away_for_a_while_is_told_and_nothing_is_lost(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_CHECKOUT_SECONDS", 1.0)
    async with opened(environment, tmp_path / "notes") as (engine, vault):
        vault.write("before.md", "owls\n")
        await settle(vault)
        for number in range(800):
            vault.write(f"{number % 9}/{number}.md", f"# Part\n\nword{number}\n" * 5)
        await eventually(lambda: vault.jobs(JobStatus.PENDING))
        data = engine.settings.paths.data
        away = FileLock(data / "postgres.lock")
        assert away.try_exclusive()  # nobody can start it again until this is released
        first_process(data).kill()
        vault.write("during.md", "larks\n")
        (vault.root / "before.md").unlink()
        await eventually(lambda: engine.faults)
        reason = " ".join(engine.faults.values())
        assert "Traceback" not in reason
        assert "cannot be reached" in reason or "terminat" in reason or "connection" in reason
        with pytest.raises(AWAY):
            await engine.notes.status()
        away.release()
        async with asyncio.timeout(AGAIN_WITHIN):
            await eventually(lambda: _answers(vault), AGAIN_WITHIN)
            await settle(vault, AGAIN_WITHIN)
        assert set(await vault.in_index()) == set(truth(vault.root))
        assert await vault.failures() == {}
        await eventually(lambda: not engine.faults)
    assert servers(data) == []


async def test_a_server_killed_again_and_again_while_notes_are_indexed(
    environment: dict[str, str], tmp_path: Path, chance: random.Random
) -> None:
    async with opened(environment, tmp_path / "notes") as (engine, vault):
        data = engine.settings.paths.data
        for kill in range(4):
            for number in range(150):
                vault.write(f"{kill}/{number}.md", f"word{chance.randrange(900)} of {kill}\n")
            async with aclosing(engine.database.feed.subscribe("job")) as changes:
                for _ in range(chance.randrange(1, 4)):
                    await anext(changes)
            dying = servers(data)
            first_process(data).kill()
            # Its children answer for another moment.
            await eventually(partial(_gone, dying), AGAIN_WITHIN)
            await eventually(lambda: _answers(vault), AGAIN_WITHIN)
        await settle(vault, AGAIN_WITHIN)
        assert await vault.failures() == {}, "the deaths of the server are nobody's fault"


def _gone(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() for process in processes)


async def _answers(vault: Vault) -> bool:
    try:
        return await idle(vault) or True
    except AWAY:
        return False
