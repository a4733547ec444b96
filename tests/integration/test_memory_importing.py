"""Conversations are imported once, however often one asks; what was passed over is told, and secrets stay out."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from engine.brain.channels import Origin
from engine.errors import CoreUnknown, SourceError
from engine.language import Language
from engine.memory import Memory, importing
from engine.memory.brains import entered
from engine.memory.importers.model import Exchange
from engine.memory.model import BrainKey, Kind
from engine.notes import Notes
from engine.services import Services
from tests.conversations import chatgpt_conversation, claude, claude_session, codex_session, lines
from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database import Database
    from engine.memory.imported import ImportReport
    from engine.settings import Settings
    from tests.integration.vault import AttentiveEmbedder

KEY = BrainKey(user="alice")
AGO = time.time() - 3600


@pytest.fixture
async def memory(database: Database, settings: Settings, embedder: AttentiveEmbedder) -> Memory:
    """A memory with the bundled model and no language model."""
    notes = Notes(database, embedder, settings, Services())
    await notes.prepare()
    return Memory(database, settings, notes.embedders, Language(database, settings))


def old(path: Path) -> Path:
    """A file that nobody writes to any more."""
    os.utime(path, (AGO, AGO))
    return path


def plain(path: Path, *texts: str, channel: str = "talk", **more: Any) -> Path:
    """A plain file of questions."""
    rows = [
        {"channel": channel, "role": "user", "text": text, "at": "2025-03-01T10:00:00Z", **more}
        for text in texts
    ]
    return old(lines(path, rows))


async def test_an_import_can_be_repeated(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "projects"
    claude_session(folder / "a" / "session-2.jsonl", day=2)
    claude_session(folder / "b" / "session-1.jsonl", day=1)
    first = await memory.importing.run("claude-code", folder, KEY, settled=True)
    assert (first.files, first.channels, first.turns, first.packets, first.known) == (2, 2, 8, 4, 0)
    assert first.skipped["a thought"] == 2
    assert first.examples["a thought"] == "session-1.jsonl:L6"
    again = await memory.importing.run("claude-code", folder, KEY, settled=True)
    assert (again.packets, again.known) == (0, 4)
    rows = await memory.recent(KEY)
    assert [row.id for row in rows] == sorted((row.id for row in rows), reverse=True), "the oldest came first"
    assert (rows[-1].channel, rows[-1].origin) == ("claude-code session-1", "session-1.jsonl:L5")
    assert rows[-1].at == datetime(2025, 3, 1, 10, 2, tzinfo=UTC)


async def test_each_kind_is_imported(memory: Memory, tmp_path: Path) -> None:
    codex_session(tmp_path / "rollout-1.jsonl")
    conversation = chatgpt_conversation("a", 1_700_000_000.0, ("user", "first"), ("assistant", "a"))
    (tmp_path / "conversations.json").write_text(json.dumps([conversation]))
    for kind, name in (("codex", "rollout-1.jsonl"), ("chatgpt", "conversations.json")):
        assert (await memory.importing.run(kind, old(tmp_path / name), KEY)).packets == 1
    assert {row.input for row in await memory.recent(KEY)} == {"Rename the heron module.", "first"}


async def test_a_dry_run_tells_what_would_be_and_keeps_nothing(memory: Memory, tmp_path: Path) -> None:
    path = plain(tmp_path / "t.jsonl", "one", "two", "AKIAIOSFODNN7EXAMPLE is the key")
    would = await memory.importing.run("jsonl", path, KEY, dry_run=True)
    assert (would.dry_run, would.packets, would.masked) == (True, 3, 1)
    assert (await memory.metrics(KEY)).channels == 0
    assert (await memory.importing.run("jsonl", path, KEY)).packets == 3
    assert (await memory.importing.run("jsonl", path, KEY, dry_run=True)).packets == 0


async def test_secrets_are_masked_on_the_way_in(memory: Memory, database: Database, tmp_path: Path) -> None:
    key = "AKIAIOSFODNN7EXAMPLE"
    path = plain(tmp_path / "t.jsonl", f"My key is {key}, keep it.", channel=key, speaker=key)
    report = await memory.importing.run("jsonl", path, KEY)
    assert report.masked == 1
    (row,) = await memory.recent(KEY)
    assert "AKIA" not in f"{row.input} {row.channel} {row.speaker}"
    assert "[masked:" in row.input
    async with entered(database, KEY) as (connection, _):
        cursor = await connection.execute("SELECT count(*) FROM packet_posting WHERE term LIKE 'akia%'")
        assert await cursor.fetchone() == (0,)


async def test_names_and_keys_may_be_anything(memory: Memory, tmp_path: Path) -> None:
    odd = "a\0\ud800"
    path = tmp_path / os.fsdecode(b"odd \xff.jsonl")
    rows = [
        {"channel": odd, "role": role, "text": f"{odd} {role}", "id": odd, "speaker": odd}
        for role in ("user", "assistant")
    ]
    report = await memory.importing.run("jsonl", old(lines(path, rows)), KEY)
    assert (report.packets, report.skipped) == (1, {})
    (row,) = await memory.recent(KEY)
    assert (row.channel, row.speaker) == ("a\ufffd\ufffd",) * 2
    assert (await memory.importing.run("jsonl", path, KEY)).known == 1


async def test_answers_may_have_the_ids_of_questions(memory: Memory, tmp_path: Path) -> None:
    rows = [
        {"channel": "talk", "role": role, "text": f"{role} {number}", "id": str(number + (role != "user"))}
        for number in range(importing.BATCH + 5)
        for role in ("user", "assistant")
    ]
    path = old(lines(tmp_path / "t.jsonl", rows))
    report = await memory.importing.run("jsonl", path, KEY)
    assert (report.packets, report.known) == (importing.BATCH + 5, 0)
    again = await memory.importing.run("jsonl", path, KEY)
    assert (again.packets, again.known) == (0, importing.BATCH + 5)


async def test_a_question_waits_for_its_answer_while_its_file_is_written(
    memory: Memory, tmp_path: Path
) -> None:
    path = lines(tmp_path / "s.jsonl", [claude("user", "Which port?", 1)])
    report = await memory.importing.run("claude-code", path, KEY)
    assert (report.packets, report.skipped) == (0, {importing.WAITS: 1})
    lines(
        path,
        [claude("user", "Which port?", 1), claude("assistant", "5432.", 2), claude("user", "And host?", 3)],
    )
    assert (await memory.importing.run("claude-code", path, KEY)).packets == 1
    assert (await memory.importing.run("claude-code", old(path), KEY)).packets == 1
    assert {(row.input, row.response) for row in await memory.recent(KEY)} == {
        ("Which port?", "5432."),
        ("And host?", ""),
    }


async def test_a_later_correction_lands_after_what_it_corrects(memory: Memory, tmp_path: Path) -> None:
    plain(tmp_path / "a.jsonl", "No, my name is Alison.", channel="later", at="2025-04-01T10:00:00Z")
    plain(tmp_path / "b.jsonl", "My name is Alice.", channel="sooner")
    await memory.importing.run("jsonl", tmp_path, KEY)
    kinds = {row.input: row.kind for row in await memory.recent(KEY)}
    assert kinds == {"No, my name is Alison.": Kind.CORRECTION, "My name is Alice.": Kind.RAW}
    assert (await memory.prepare(KEY, "My name is Alice.")).contradiction is not None


async def test_what_is_followed_grows(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "LOOK_SECONDS", 0.01)
    rows: list[dict[str, Any]] = [
        claude("user", "one", 1),
        claude("assistant", "1", 2),
        claude("user", "two", 3),
    ]
    path = lines(tmp_path / "s" / "a.jsonl", rows)
    reports: list[ImportReport] = []
    following = asyncio.create_task(
        memory.importing.follow("claude-code", path.parent, KEY, on_report=reports.append)
    )

    async def inputs() -> set[str]:
        return {row.input for row in await memory.recent(KEY)}

    async def are(*wanted: str) -> None:
        await eventually(lambda: _equal(inputs, set(wanted)))

    await are("one")
    with path.open("a") as file:
        file.write(
            json.dumps(claude("assistant", "2", 4)) + "\n" + json.dumps(claude("user", "three", 5))[:40]
        )
    lines(path.parent / "b.jsonl", [claude("user", "new", 1, day=3), claude("user", "x", 2, day=3)])
    await are("one", "new")
    lines(path, [*rows, claude("assistant", "2", 4), claude("user", "three", 5)])
    await are("one", "two", "new")
    following.cancel()
    with suppress(asyncio.CancelledError):
        await following
    assert sum(report.packets for report in reports) == 3


def test_of_files_that_are_followed_only_those_that_grew_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [plain(tmp_path / f"{number}.jsonl", "one") for number in range(3)]
    read: list[str] = []
    begun = importing._begun
    monkeypatch.setattr(importing, "_begun", lambda kind, file: read.append(file.name) or begun(kind, file))
    stamps: dict[Path, tuple[int, int]] = {}
    assert importing._changed(Origin.JSONL, tmp_path, stamps, set()) == paths
    read.clear()
    assert importing._changed(Origin.JSONL, tmp_path, stamps, set()) == []
    plain(paths[1], "one", "two")
    assert importing._changed(Origin.JSONL, tmp_path, stamps, set()) == [paths[1]]
    assert read == ["1.jsonl"]


@pytest.mark.parametrize("written", [-(2**40), 2**40, 5])
def test_a_turn_without_a_time_in_a_file_of_another_age_is_of_now(written: int) -> None:
    tally = importing._Tally("jsonl", "t.jsonl", dry_run=False)
    (turn,) = importing._turns([Exchange("k", "c", "two", None, None, "o")], float(written), tally)
    assert datetime.now(UTC) - turn.at < timedelta(minutes=1)


async def _equal(look: Any, wanted: set[str]) -> bool:
    return await look() == wanted


async def test_what_is_not_there_is_told(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for kind, path in (("gemini", tmp_path), ("jsonl", tmp_path / "none"), ("codex", tmp_path / "empty")):
        with pytest.raises(SourceError):
            await memory.importing.run(kind, path, KEY)
    with pytest.raises(CoreUnknown):
        await memory.importing.run("jsonl", plain(tmp_path / "t.jsonl", "x"), BrainKey(core="work"))


async def test_a_file_that_cannot_be_read_is_one_of_many(memory: Memory, tmp_path: Path) -> None:
    plain(tmp_path / "a.jsonl", "heard")
    (tmp_path / "b.jsonl").mkdir()
    report = await memory.importing.run("jsonl", tmp_path, KEY)
    assert report.packets == 1
    assert report.skipped == {"cannot be read: Is a directory": 1}
