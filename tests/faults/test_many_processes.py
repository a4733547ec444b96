"""Several processes on one data folder: one watches, all work, each job is done once, and the last turns off the light."""

from __future__ import annotations

import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from engine.database import Database
from engine.notes import Notes
from engine.notes.model import JobStatus
from engine.services import Services
from engine.settings import Settings
from tests.faults.truth import idle, settle, truth
from tests.integration.database_processes import servers
from tests.integration.test_watcher_faults import listeners
from tests.integration.vault import Vault
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.faults.nursery import Nursery
    from tests.integration.vault import AttentiveEmbedder

TAKEOVER_WITHIN = 5.0
NOBODY = 65534


@asynccontextmanager
async def onlooker(
    environment: dict[str, str], root: Path, embedder: AttentiveEmbedder
) -> AsyncIterator[Vault]:
    """One more process on the same embedded database, which only searches."""
    settings = Settings.load(environment, cwd=root.parent)
    database = await Database.open(settings, application="tests")
    try:
        notes = Notes(database, embedder, settings, Services())
        await notes.prepare()
        root.mkdir(exist_ok=True)
        yield Vault(database, notes, settings, await notes.add_folder(root))
    finally:
        await database.close()


async def test_two_that_watch_three_that_work_and_one_that_searches(
    environment: dict[str, str], tmp_path: Path, nursery: Nursery, embedder: AttentiveEmbedder
) -> None:
    data = Settings.load(environment, cwd=tmp_path).paths.data
    async with onlooker(environment, tmp_path / "notes", embedder) as vault:
        watching = [await nursery.spawn(environment, "watch", "work") for _ in range(2)]
        working = await nursery.spawn(environment, "work")
        for number in range(600):
            vault.write(f"{number % 20}/{number}.md", f"# Note {number}\n\nword{number} and common words\n")
        await eventually(lambda: _files(vault, 600))
        await settle(vault)
        await _each_once(vault, {*watching, working}, 600)
        assert await vault.found("word599") == ["19/599.md"]
        assert [bool(listeners(pid)) for pid in watching] in ([True, False], [False, True])

        for _ in range(3):
            holder, other = sorted(watching, key=lambda pid: not listeners(pid))
            await nursery.kill(holder)
            watching = [other]
            start = time.monotonic()
            vault.write(f"after-{holder}.md", f"seen{holder}\n")
            await eventually(lambda holder=holder: vault.found(f"seen{holder}"), TAKEOVER_WITHIN)
            print(f"takeover: {time.monotonic() - start:.2f} s")  # noqa: T201 - a measurement
            await eventually(lambda: listeners(other))  # noqa: B023 - called before the next turn
            watching.append(await nursery.spawn(environment, "watch", "work"))
        await settle(vault)
        for pid in (*watching, working):
            await nursery.stop(pid)
        assert servers(data), "the one that searches still uses it"
    assert servers(data) == [], "the last one out stops the server"


async def _files(vault: Vault, count: int) -> bool:
    return await vault.value("SELECT count(*) FROM file") == count and await idle(vault)


async def _each_once(vault: Vault, pids: set[int], files: int) -> None:
    """What is done was claimed once; a path that was noticed again while it was worked on has a second job."""
    done = await vault.jobs(JobStatus.DONE)
    assert {job.attempts for job in done} == {1}
    assert len({job.path for job in done}) == files
    assert {int((job.worker or "").split(":")[1]) for job in done} <= pids
    assert len({job.worker for job in done}) > 1, "the work was shared"
    identities = await vault.value("SELECT max(id) FROM file")
    assert identities < 2 * files, "no file was written again and again"


async def test_a_burst_of_2000_files(
    environment: dict[str, str], tmp_path: Path, nursery: Nursery, embedder: AttentiveEmbedder
) -> None:
    async with onlooker(environment, tmp_path / "notes", embedder) as vault:
        vault.write("first.md", "first\n")
        await nursery.spawn(environment, "watch", "work")
        await eventually(lambda: _files(vault, 1))
        start = time.monotonic()
        for number in range(2000):
            vault.write(f"{number % 40}/{number}.md", f"# Note {number}\n\nword{number}\n")
        await eventually(lambda: _files(vault, 2001))
        print(f"a burst of 2000 files: {time.monotonic() - start:.1f} s")  # noqa: T201 - a measurement
        await settle(vault)
        start = time.monotonic()
        (vault.root / "0").rename(tmp_path / "out")
        (vault.root / "1").rename(vault.root / "moved")
        await eventually(lambda: _files(vault, 1951))
        print(f"folders of 50 moved: {time.monotonic() - start:.1f} s")  # noqa: T201 - a measurement
        await settle(vault)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, and root reads everything")
async def test_rights_that_are_taken_away_are_told_and_the_index_is_kept(
    nursery: Nursery, embedder: AttentiveEmbedder, tmp_path: Path
) -> None:
    """The engine that watches runs as an ordinary user; the one that looks on is root."""
    import shutil
    from pathlib import Path

    home = Path("/tmp") / f"noctuary-faults-{os.getpid()}"
    root = home / "notes"
    for folder in (home, root):
        folder.mkdir(mode=0o755)
        os.chown(folder, NOBODY, NOBODY)
    names = {f"XDG_{each}_HOME": str(home / each) for each in ("DATA", "CONFIG", "STATE", "CACHE")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **names}
    environment["NOCTUARY_POLL_INTERVAL"] = (
        "0.2"  # the interpreter may lie where only root can start it again
    )
    try:
        first = await nursery.spawn(environment, "watch", "work", user=NOBODY, folder=root)
        async with onlooker(environment, root, embedder) as vault:
            await _rights(vault)
            await nursery.stop(first)
    finally:
        shutil.rmtree(home)


async def _rights(vault: Vault) -> None:
    for path in ("open.md", "shut.md", "folder/in.md", "folder/deep/in.md"):
        vault.write(path, f"{path} is here\n")
    await eventually(lambda: _files(vault, 4), 15)
    vault.write("shut.md", "nobody reads this\n").chmod(0)
    (vault.root / "folder").chmod(0)
    vault.write("open.md", "after it\n")
    failures = await eventually(vault.failures)
    assert failures["shut.md"] == f"{vault.root}/shut.md cannot be read: Permission denied. Check its rights."
    await eventually(lambda: vault.found("after"))
    assert len(await vault.in_index()) == 4, "what cannot be seen is kept"
    (vault.root / "folder").chmod(0o755)
    (vault.root / "shut.md").chmod(0o644)
    vault.write("folder/new.md", "after its return\n")
    await eventually(lambda: _nothing_failed(vault), 15)
    await settle(vault)
    assert await vault.in_index() == truth(vault.root)


async def _nothing_failed(vault: Vault) -> bool:
    return await vault.failures() == {}
