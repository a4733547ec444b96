"""Traces: what was asked is kept, once, and never in anybody's way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine import Engine
from engine.notes import traces as module
from engine.notes.model import Mode, SearchResult
from engine.notes.traced import Trace, TraceKind
from engine.notes.traces import Traces
from tests.hostile import PAYLOADS
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.database import Database
    from engine.settings import Settings
    from tests.integration.line import Line


@pytest.fixture
async def traces(database: Database) -> AsyncIterator[Traces]:
    held = Traces(database, "noctuary")
    yield held
    await held.close()


def result(query: str, seconds: float = 0.01) -> SearchResult:
    return SearchResult(query, Mode.HYBRID, (), seconds)


async def queries(traces: Traces) -> list[str]:
    return [trace.query for trace in await traces.recent()]


async def test_a_trace_is_written_in_the_background_and_comes_back_whole(traces: Traces) -> None:
    given = Trace(
        TraceKind.ASK,
        "noctuary ask",
        "when do owls hunt",
        3,
        1.5,
        answered=True,
        prompt_version="ask_v1",
        provider="ollama",
        model="m",
        prompt_tokens=400,
        completion_tokens=30,
        trouble="slow",
    )
    traces.note(given)
    (found,) = await eventually(traces.recent)
    assert found.at is not None
    assert replace(found, at=None, id=None) == given


async def test_what_is_typed_is_one_search_whatever_the_number_of_letters(traces: Traces) -> None:
    for typed in ("o", "ow", "owl", "ow", "owls hunt"):
        traces.searched(result(typed), typing=True)
    traces.searched(result("moths"), typing=True)
    traces.searched(result("moths"), typing=False)
    traces.searched(result("bats"), typing=True)
    await traces.close()
    assert await queries(traces) == ["bats", "moths", "owls hunt"]


async def test_a_search_as_one_types_is_kept_when_nothing_follows(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TYPING", 0.3)
    traces.searched(result("owl"), typing=True)
    assert (await eventually(traces.recent))[0].query == "owl"


async def test_closing_writes_what_is_held(traces: Traces) -> None:
    for number in range(300):
        traces.searched(result(f"query {number}"))
    await traces.close()
    assert len(await traces.recent(1000)) == 300


async def test_any_query_is_kept_as_far_as_a_database_can(traces: Traces) -> None:
    given = [*PAYLOADS.values(), "nul\0", "half \ud800 of a pair", "x" * 10_000]
    for query in given:
        traces.searched(result(query))
    await traces.close()
    assert len(await traces.recent(1000)) == len(given)


async def test_a_database_that_does_not_take_them_is_said_once_and_costs_nothing(
    traces: Traces, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with await psycopg.AsyncConnection.connect(settings.database_url or "", autocommit=True) as owner:
        await owner.execute("ALTER TABLE noctuary.trace RENAME TO gone")
        for number in range(3):
            traces.searched(result(f"secret {number}"))
            await traces._write()
        await owner.execute("ALTER TABLE noctuary.gone RENAME TO trace")
    assert len([record for record in caplog.records if record.name == "noctuary.traces"]) == 1
    assert "secret" not in caplog.text
    traces.searched(result("owls"))
    await traces.close()
    assert await queries(traces) == ["owls"]


async def test_old_ones_are_tidied_away(
    traces: Traces, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT", 5)
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO trace (at, kind, door, query, citations, seconds, answered)"
            " SELECT now() - CASE WHEN number = 20 THEN interval '91 days' ELSE interval '1 day' END,"
            " 'search', 'noctuary', number::text, 0, 0, false FROM generate_series(1, 20) AS number"
        )
        await module.tidy(connection)
    assert await queries(traces) == ["19", "18", "17", "16"]


async def test_an_engine_keeps_its_searches_and_none_when_told_so(settings: Settings, tmp_path: Path) -> None:
    for keep in (True, False):
        engine = await Engine.open(replace(settings, traces=keep), application="noctuary test")
        try:
            await engine.notes.search("owls", k=5)
            await engine.notes.search("owls of an eval", trace=False)
            await engine.traces.close()
            found = await engine.traces.recent()
            assert [(trace.query, trace.door, trace.citations) for trace in found] == [
                ("owls", "noctuary test", False)
            ]
        finally:
            await engine.close()


async def test_a_flood_of_searches_is_written_together(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    write = Traces._write

    async def counted(held: Traces) -> None:
        written.append(len(held._held))
        await write(held)

    monkeypatch.setattr(Traces, "_write", counted)
    for number in range(1000):
        traces.searched(result(f"query {number}"))
        if number % 100 == 0:
            await asyncio.sleep(0)
    await eventually(lambda: sum(written) == 1000)
    assert len(written) <= 3


def test_the_command_shows_them_newest_last(noctuary: Line) -> None:
    assert noctuary("traces").err == "Nothing was asked yet.\n"
    noctuary.index()
    noctuary.search("heron")
    noctuary.search("zebra \x1b[31m")
    lines = noctuary("traces").out.splitlines()
    assert [line.split(" ms ")[1].strip() for line in lines] == [
        "3 citations  heron",
        "0 citations  zebra ␛[31m",
    ]
    assert noctuary("traces", "--kind", "ask", "--json").json == {"traces": []}
    (found,) = noctuary("traces", "--limit", "1", "--json").json["traces"]
    assert (found["query"], found["door"], found["citations"]) == ("zebra \x1b[31m", "noctuary search", 0)


def test_no_query_is_ever_in_a_log(noctuary: Line, tmp_path: Path) -> None:
    noctuary.index()
    noctuary.search("heronsecret")
    logs = [path for path in tmp_path.rglob("noctuary.log*") if path.is_file()]
    assert logs
    for path in logs:
        for line in path.read_text().splitlines():
            assert "heronsecret" not in json.loads(line)["text"]


async def test_no_text_of_a_trace_keeps_the_others_of_its_batch_from_being_kept(traces: Traces) -> None:
    for payload in PAYLOADS.values():
        traces.note(
            Trace(TraceKind.ASK, "d", payload, 1, 0.1, answered=False, model=payload, trouble=payload)
        )
    await traces.close()
    assert len(await traces.recent(500)) == len(PAYLOADS)


async def test_a_text_is_looked_for_in_the_query_the_door_the_model_and_the_trouble(traces: Traces) -> None:
    traces.note(Trace(TraceKind.SEARCH, "noctuary serve", "Owls at NIGHT", 1, 0.1, answered=True))
    traces.note(
        Trace(TraceKind.ASK, "noctuary", "why", 1, 0.1, answered=False, model="qwen", trouble="Timed out.")
    )
    await traces.close()
    for text, found in (
        ("at night", ["Owls at NIGHT"]),
        ("SERVE", ["Owls at NIGHT"]),
        ("qwen", ["why"]),
        ("timed", ["why"]),
        ("", ["why", "Owls at NIGHT"]),
        ("%", []),
        ("\0", ["why", "Owls at NIGHT"]),  # as it is kept: a space
        ("\udcff", []),
    ):
        assert [trace.query for trace in await traces.recent(text=text)] == found, text
