"""Background services: one that falls is started again, later and later, and it is said so."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine import Engine, services
from engine.activity import ActivityLog
from engine.errors import DatabaseUnavailable
from engine.models.embedding import bundled
from engine.notes import Notes, watcher
from engine.notes.model import Mode
from engine.services import Services
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.database import Database
    from engine.settings import Settings
    from tests.conftest import Server
    from tests.integration.vault import AttentiveEmbedder


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(services, "WELL_AFTER", 1.0)


async def test_a_service_that_falls_over_its_own_cleaning_up_is_stopped_all_the_same() -> None:
    """Its error takes the place of the cancellation, and it was started again: whoever stopped it waited on."""
    running = asyncio.Event()

    async def clumsy() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("the disk is full")

    held = Services()
    held.start("clumsy", clumsy)
    await running.wait()
    async with asyncio.timeout(5):
        await held.stop()
    assert not held.running("clumsy")
    assert held.faults == {}


async def test_a_service_of_several_tasks_is_started_again_when_one_of_them_falls() -> None:
    """Python 3.11 leaves a mark of cancellation on whoever waits for a group of which one task failed."""
    falls = 0

    async def one() -> None:
        nonlocal falls
        await asyncio.sleep(0)
        falls += 1
        raise OSError("the socket is gone")

    async def several() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait())
            group.create_task(one())

    held = Services()
    held.start("several", several)
    await eventually(lambda: falls == 3)
    await held.stop()


async def test_a_lost_database_is_no_fault_of_a_service_unless_it_stays_away() -> None:
    falls = 0
    lasting = asyncio.Event()

    async def falling() -> None:
        nonlocal falls
        falls += 1
        if falls == 2:
            await lasting.wait()
        raise DatabaseUnavailable("The server went away.")

    held = Services()
    held.start("embedder", falling)
    await eventually(lambda: falls == 2)
    assert held.faults == {}
    lasting.set()
    await eventually(lambda: held.faults == {"embedder": "The server went away."})
    await held.stop()


async def test_a_service_that_falls_is_started_again_and_its_fault_is_visible_meanwhile(
    caplog: pytest.LogCaptureFixture,
) -> None:
    starts: list[float] = []
    faults: list[str] = []
    recovered = asyncio.Event()

    async def falling() -> None:
        starts.append(asyncio.get_running_loop().time())
        faults.extend(held.faults.values())
        if len(starts) < 4:
            async with asyncio.TaskGroup() as group:
                group.create_task(_fall())
        recovered.set()
        await asyncio.Event().wait()

    held = Services()
    held.start("indexer", falling)
    await eventually(lambda: held.faults == {"indexer": "the disk is full"})
    async with asyncio.timeout(5):
        await recovered.wait()
    assert faults == ["the disk is full"] * 3, "it seems well only after it ran for a while"
    assert set(held.since) == {"indexer"}
    await eventually(lambda: not held.faults)
    assert held.since == {}
    pauses = [later - earlier for earlier, later in itertools.pairwise(starts)]
    least = [0.02, 0.04, 0.08]  # a busy machine may add to each, so they are not compared with each other
    assert all(pause >= wanted for pause, wanted in zip(pauses, least, strict=True)), "later and later"
    assert caplog.text.count("indexer stopped: the disk is full") == 3
    assert "Traceback" in caplog.text
    await held.stop()


async def test_what_fell_is_started_at_once_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "FIRST_PAUSE", 3600.0)
    starts: list[float] = []

    async def falling() -> None:
        starts.append(asyncio.get_running_loop().time())
        if len(starts) == 1:
            await _fall()
        await asyncio.Event().wait()

    held = Services()
    held.start("worker", falling)
    await eventually(lambda: held.faults)
    held.retry_now()
    await eventually(lambda: len(starts) == 2, 5)
    await held.stop()


async def test_what_fell_with_the_database_is_started_when_that_is_back(
    settings: Settings, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "FIRST_PAUSE", 3600.0)
    engine = await Engine.open(settings)
    starts: list[int] = []

    async def falling() -> None:
        starts.append(1)
        if len(starts) == 1:
            await _fall()
        await asyncio.Event().wait()

    try:
        await engine.start(watch=False, work=False, embed=False)
        engine.keep("something", falling)
        await eventually(lambda: "something" in engine.faults)
        async with engine.database.connection() as connection:
            row = await (await connection.execute("SELECT current_database()")).fetchone()
        assert row
        ended = server.run(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            f" WHERE query = 'LISTEN noctuary' AND datname = '{row[0]}'"
        )
        assert ended == [(True,)]
        await eventually(lambda: len(starts) == 2, 20)
    finally:
        await engine.close()


async def _fall() -> None:
    raise OSError("the disk is full\nand a second line")


async def test_a_fault_without_words_is_named_by_its_kind() -> None:
    async def mute() -> None:
        raise ValueError

    held = Services()
    held.start("mute", mute)
    await eventually(lambda: held.faults == {"mute": "ValueError"})
    await held.stop()


async def test_stop_waits_until_the_services_have_cleaned_up() -> None:
    cleaned: list[str] = []

    async def tidy(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append(name)

    held = Services()
    for name in ("one", "two", "three"):
        held.start(name, lambda name=name: tidy(name))
    await asyncio.sleep(0)
    await held.stop("two")
    assert cleaned == ["two"]
    await held.stop()
    assert sorted(cleaned) == ["one", "three", "two"]


async def test_a_running_service_is_not_started_twice_and_one_that_ended_may_be_again() -> None:
    runs: list[int] = []

    async def once() -> None:
        runs.append(1)

    held = Services()
    held.start("once", once)
    held.start("once", once)
    await eventually(held._tasks["once"].done)
    assert len(runs) == 1
    held.start("once", once)
    await eventually(lambda: len(runs) == 2)
    await held.stop()


async def test_a_watcher_that_falls_does_not_stop_the_worker_and_the_engine_tells(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def falling(self: watcher.FolderWatcher) -> None:
        raise RuntimeError("a fault nobody foresaw")

    monkeypatch.setattr(watcher.FolderWatcher, "run", falling)
    root = tmp_path / "notes"
    root.mkdir()
    engine = await Engine.open(settings)
    try:
        await engine.notes.add_folder(root)
        await engine.start(embed=False)
        await eventually(lambda: "a fault nobody foresaw" in engine.faults.values())
        (fault,) = (await engine.notes.status()).faults
        assert (fault.service, fault.reason) == ("watch-1", "a fault nobody foresaw")
        (item,) = await engine.inbox.items()
        assert item.title == "Background service down (watch-1): a fault nobody foresaw"
        assert (item.pane, item.oldest) == ("log", fault.since)
        (root / "a.md").write_text("owls\n")
        await engine.notes.ingest(root / "a.md")

        async def found() -> bool:
            return bool((await engine.notes.search("owls")).citations)

        await eventually(found)
    finally:
        await engine.close()
    assert engine.faults == {}
    assert any("a fault nobody foresaw" in record.text for record in engine.log.records())


async def test_a_model_that_is_not_what_it_says_is_told_and_never_called_well(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundled, "MODEL", replace(bundled.MODEL, sha256="0" * 64))
    root = tmp_path / "notes"
    root.mkdir()
    (root / "a.md").write_text("owls\n")
    engine = await Engine.open(settings)
    changes = engine.subscribe("service")
    try:
        before = (await engine.notes.status()).embedding
        assert before is not None
        assert (before.proven, before.trouble) == (False, "")
        await engine.notes.add_folder(root)
        await engine.start()
        async with asyncio.timeout(20):
            await anext(changes)

        async def told() -> bool:
            status = await engine.notes.status()
            return bool(status.embedding and status.embedding.trouble and status.faults)

        await eventually(told)
        status = await engine.notes.status()
        assert status.embedding is not None
        assert not status.embedding.proven
        assert "sha256" in status.embedding.trouble
        assert [fault.service for fault in status.faults] == ["embedder"]
        (item,) = await engine.inbox.items()
        assert "sha256" in item.title
    finally:
        await engine.close()


async def test_a_model_is_called_well_after_a_vector_was_made(
    database: Database, settings: Settings, embedder: AttentiveEmbedder
) -> None:
    held = Services()
    notes = Notes(database, embedder, settings, held)
    await notes.prepare()
    changes = database.feed.subscribe("service")
    status = (await notes.status()).embedding
    assert status is not None
    assert not status.proven
    await notes.search("owls", mode=Mode.VECTOR)
    status = (await notes.status()).embedding
    assert status is not None
    assert status.proven
    assert list(changes._waiting) == ["service"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[ActivityLog]:
    opened = ActivityLog()
    opened.open(tmp_path, "info")
    yield opened
    opened.shut()


def test_the_log_file_holds_one_json_object_a_line(log: ActivityLog, tmp_path: Path) -> None:
    logger = logging.getLogger("noctuary.worker")
    logger.info("indexed %d", 3)
    logger.debug("too fine")
    logger.warning("two\nlines \x1b[2J [/b] 🐘 \udcff")
    try:
        int("inner")
    except ValueError:
        logger.exception("it fell")
    lines = (tmp_path / "noctuary.log").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [(r["level"], r["source"], r["text"]) for r in records] == [
        ("info", "worker", "indexed 3"),
        ("warning", "worker", "two\nlines \x1b[2J [/b] 🐘 \udcff"),
        ("error", "worker", "it fell"),
    ]
    assert "ValueError: invalid literal" in records[2]["trace"]
    assert "\x1b" not in "".join(lines)
    assert [(r.level, r.text) for r in log.records()] == [(r["level"], r["text"]) for r in records]


def test_listeners_hear_every_record_until_they_stop(log: ActivityLog) -> None:
    heard: list[str] = []
    unlisten = log.listen(lambda record: heard.append(record.text))
    logging.getLogger("noctuary.jobs").info("one")
    unlisten()
    unlisten()
    logging.getLogger("noctuary.jobs").info("two")
    assert heard == ["one"]


def test_a_listener_that_raises_does_not_break_what_is_logged(
    log: ActivityLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    heard: list[str] = []

    def falling(_: object) -> None:
        raise RuntimeError("the screen is gone")

    log.listen(falling)
    log.listen(lambda record: heard.append(record.text))
    logging.getLogger("noctuary.jobs").info("one")
    assert heard == ["one"]
    assert (tmp_path / "noctuary.log").read_text().count("\n") == 1


def test_a_log_that_cannot_be_written_is_told_once_on_the_screen_and_never_on_standard_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "noctuary.log").symlink_to("/dev/full")
    log = ActivityLog()
    log.open(tmp_path, "info")
    for number in range(3):
        logging.getLogger("noctuary.worker").info("line %d", number)
    log.listen(lambda record: 1 / 0)
    logging.getLogger("noctuary.worker").info("line 3")
    log.shut()
    assert capfd.readouterr().err == ""
    texts = [record.text for record in log.records()]
    assert [text for text in texts if text.startswith("line")] == [f"line {number}" for number in range(4)]
    assert sum("No space left on device" in text for text in texts) == 1
    assert sum("division by zero" in text for text in texts) == 1


WRITER = """
import logging, sys
from pathlib import Path
from engine import activity
activity.FILE_BYTES, activity.FILE_COUNT = 4_000, 1_000
log = activity.ActivityLog()
log.open(Path(sys.argv[1]), "info")
for number in range(300):
    logging.getLogger("noctuary.test").info("%s-%d", sys.argv[2], number)
log.shut()
"""


def test_several_processes_rotate_one_log_and_lose_no_line(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], cwd=Path(__file__).parents[2])
        for name in "abcd"
    ]
    assert [writer.wait(30) for writer in writers] == [0] * 4
    files = [path for path in tmp_path.glob("noctuary.log*") if path.suffix != ".lock"]
    lines = [json.loads(line)["text"] for file in files for line in file.read_text().splitlines()]
    assert sorted(lines) == sorted(f"{name}-{number}" for name in "abcd" for number in range(300))
    assert all(path.stat().st_size < 5_000 for path in files)


def test_the_log_is_bounded_and_shut_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine import activity

    monkeypatch.setattr(activity, "FILE_BYTES", 10_000)
    log = ActivityLog()
    log.open(tmp_path, "info")
    logger = logging.getLogger("noctuary.worker")
    for number in range(activity.KEPT + 10):
        logger.info("line %d", number)
    assert len(log.records()) == activity.KEPT
    assert log.records()[-1].text == f"line {activity.KEPT + 9}"
    files = sorted(path.name for path in tmp_path.glob("noctuary.log*") if path.suffix != ".lock")
    assert files == ["noctuary.log", *(f"noctuary.log.{number}" for number in range(1, 4))]
    log.shut()
    logger.info("after")
    assert log.records()[-1].text != "after"
    assert not any(isinstance(handler, ActivityLog) for handler in logging.getLogger("noctuary").handlers)


async def test_what_happened_before_is_in_the_history(tmp_path: Path) -> None:
    before = ActivityLog()
    before.open(tmp_path, "info")
    logging.getLogger("noctuary.worker").error("the heron failed")
    before.shut()
    with (tmp_path / "noctuary.log").open("a") as file:
        file.write('{"at": "torn')
    after = ActivityLog()
    after.open(tmp_path, "info")
    logging.getLogger("noctuary.worker").info("the owl went on")
    after.shut()
    assert [(r.level, r.source, r.text) for r in after.history()] == [
        ("error", "worker", "the heron failed"),
        ("info", "worker", "the owl went on"),
    ]
    assert [r.text for r in after.records()] == ["the owl went on"]
