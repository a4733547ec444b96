"""The views of the Log pane on the real engine and database: the log, searches and asks, tokens."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from engine.notes.traced import Trace, TraceKind
from engine.notes.traces import Traces
from tests.hostile import PAYLOADS, STEERS
from tests.tui.desk import NOON, NOTES, desk, write
from tui import status_reader
from tui.panes import log_views
from tui.panes.base import Fetched
from tui.panes.log import LogPane
from tui.panes.search import SearchPane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.settings import Settings
    from tests.tui.desk import Desk

USE = (
    "INSERT INTO language_use (at, purpose, provider, model, prompt_tokens, completion_tokens, estimated, failed)"
    " VALUES (%s, %s, 'ollama', %s, %s, %s, %s, %s)"
)


def search(query: str, citations: int = 3, minutes: float = 1, door: str = "noctuary search") -> Trace:
    at = NOON - timedelta(minutes=minutes)
    return Trace(TraceKind.SEARCH, door, query, citations, 0.012, answered=bool(citations), at=at)


def ask(query: str, *, answered: bool = True, trouble: str = "", citations: int = 2) -> Trace:
    return Trace(
        TraceKind.ASK,
        "noctuary serve",
        query,
        citations,
        2.5,
        answered=answered,
        prompt_version="ask_v1",
        provider="ollama",
        model="qwen3:4b",
        prompt_tokens=1200,
        completion_tokens=34,
        trouble=trouble,
        at=NOON,
    )


async def leave(screen: Desk, *traces: Trace) -> None:
    """Traces of another process."""
    other = Traces(screen.engine.database, "elsewhere")
    for trace in traces:
        other.note(trace)
    await other.close()
    await screen.settle()


def pane(screen: Desk) -> LogPane:
    return screen.pane(LogPane)


def column(screen: Desk, title: str) -> list[str]:
    at = [each.title for each in pane(screen).list.columns].index(title)
    return [row.cells[at] for row in pane(screen).list.rows]


async def shows(screen: Desk, title: str, cells: list[str]) -> None:
    """Until the rows are these; by the change feed, without a key."""
    await screen.until(
        lambda: title in [c.title for c in pane(screen).list.columns] and column(screen, title) == cells
    )


@pytest.fixture
async def screen(settings: Settings, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(settings, write(tmp_path / "vault", NOTES), now=lambda: NOON) as opened:
        await opened.press("8")
        yield opened


@pytest.fixture
async def wide(settings: Settings, tmp_path: Path) -> AsyncIterator[Desk]:
    vault = write(tmp_path / "vault", NOTES)
    async with desk(settings, vault, size=(200, 50), now=lambda: NOON) as opened:
        await opened.press("8")
        yield opened


# Views


async def test_one_key_goes_through_the_views_and_others_go_to_one(screen: Desk):
    assert "[log]  searches and asks   tokens " in screen.text
    assert "v view   f follow   l level" in screen.flash
    await screen.press("v")
    assert "[searches and asks]" in screen.text
    assert "Enter search it   l kind" in screen.flash
    await screen.press("v")
    assert "[tokens]" in screen.text
    await screen.press("v")
    assert "[log]" in screen.text
    for key, view in (("t", "[tokens]"), ("s", "[searches and asks]"), ("o", "[log]")):
        await screen.press(key)
        assert view in screen.text
        await screen.press(key)
        assert "This view is shown already" in screen.flash


async def test_each_view_is_a_command_of_the_palette(screen: Desk):
    for typed, view in (("language models read", "[tokens]"), ("what came of it", "[searches and asks]")):
        await screen.press("colon")
        await screen.type(typed)
        await screen.press("enter")
        assert view in screen.text


async def test_each_view_keeps_its_place_its_marks_and_its_filter(screen: Desk):
    await leave(screen, *(search(f"owl {number}") for number in range(30)))
    log = logging.getLogger("noctuary.test")
    for number in range(5):
        log.info("record %d", number)
    await screen.press("v", "g", "j", "j", "space")
    assert "1 mark · not following" in screen.text
    assert pane(screen).list.current.cells[3] == "owl 3"
    await screen.press("o")
    assert "mark" not in screen.text
    await screen.press("slash", *"record", "enter", "asterisk")
    assert "5 records of" in screen.text
    assert "with “record” · 5 marks" in screen.text
    await screen.press("s")
    assert pane(screen).list.current.cells[3] == "owl 3"
    assert "30 queries · all · 1 mark · not following" in screen.text
    await screen.press("o")
    assert "with “record” · 5 marks" in screen.text
    await screen.press("escape")
    assert "with" not in pane(screen)._summary.shown.plain


async def test_the_inbox_sends_to_the_log_whatever_was_shown(screen: Desk):
    await screen.press("t", "1")
    screen.app.go("log", "service_faults")
    await screen.settle()
    assert "[log]" in screen.text
    assert "v view   f follow   l level" in screen.flash
    await screen.press("1")
    screen.app.go("log", "tokens")
    await screen.settle()
    assert "[tokens]" in screen.text


async def test_an_answer_for_a_view_that_was_left_is_not_drawn_in_another(screen: Desk):
    await leave(screen, search("owl"))
    log = pane(screen)
    await screen.press("s", "o")
    log.post_message(Fetched(log_views.Seen(log.queries, (search("late"),))))
    await screen.settle()
    assert "late" not in screen.text
    assert "[log]" in screen.text


# Searches and asks


async def test_what_is_asked_elsewhere_appears_by_itself_newest_last(wide: Desk):
    await wide.press("s")
    assert "Nothing was asked yet." in wide.text
    await leave(wide, search("owls at night", door="noctuary"), search("zebra", citations=0, minutes=0))
    await shows(wide, "Query", ["owls at night", "zebra"])
    assert column(wide, "Door") == ["console", "search"]
    assert column(wide, "Outcome") == ["✓ found", "○ nothing"]
    assert column(wide, "Time") == [f"{NOON.astimezone() - timedelta(minutes=n):%H:%M:%S}" for n in (1, 0)]
    assert column(wide, "ms") == ["12", "12"]
    await leave(wide, ask("why"), ask("slow", answered=False, trouble="It timed out."))
    await leave(wide, replace(ask("cited", answered=False), model=None))
    await shows(wide, "Query", ["owls at night", "zebra", "why", "slow", "cited"])
    assert column(wide, "Outcome")[2:] == ["✓ answered", "✗ failed", "○ cited"]
    assert column(wide, "Tokens")[1:3] == ["", "1,234"]
    assert pane(wide).list.current.cells[3] == "cited"
    await wide.press("k")
    detail = pane(wide).detail.shown.plain
    assert detail.startswith("✗ It timed out. · ")
    assert "serve · 2 citations · ollama/qwen3:4b · ask_v1 · read 1,200, wrote 34" in detail
    assert detail.endswith("\nslow")
    await leave(wide, search("newer"))
    await shows(wide, "Query", ["owls at night", "zebra", "why", "slow", "cited", "newer"])
    assert pane(wide).list.current.cells[3] == "slow"


async def test_a_search_of_this_console_is_among_them(screen: Desk):
    await screen.engine.notes.index_all()
    await screen.engine.notes.work_until_idle(embed=False)
    await screen.press("s", "2")
    await screen.type("owl")
    await screen.press("escape", "8")
    await screen.engine.traces.close()
    await shows(screen, "Query", ["owl"])


async def test_the_filter_and_the_kind_look_through_all_that_are_kept(screen: Desk, monkeypatch):
    monkeypatch.setattr(log_views, "QUERIES", 5)
    await leave(screen, ask("an old question"), *(search(f"owl {number}") for number in range(8)))
    await screen.press("s")
    await shows(screen, "Query", [f"owl {number}" for number in range(3, 8)])
    assert "the newest 5 queries" in screen.text
    await screen.press("slash", *"OLD quest")
    await shows(screen, "Query", ["an old question"])
    await screen.press("enter", "escape", "l")
    assert "5 queries · searches" in screen.text.replace("the newest ", "")
    await screen.press("l")
    await shows(screen, "Query", ["an old question"])
    assert "1 query · asks" in screen.text
    await screen.press("slash", *"qwen3", "enter")
    await shows(screen, "Query", ["an old question"])
    await screen.press("slash", *"x", "enter")
    assert "No row has “qwen3x”." in screen.text


async def test_enter_asks_the_query_again_in_search_of_all_notes(screen: Desk):
    await screen.engine.notes.index_all()
    await screen.engine.notes.work_until_idle(embed=False)
    await leave(screen, search("robin\nsings"))
    await screen.press("2", "escape", "p", *"work/**", "enter")
    await screen.press("8", "s", "enter")
    assert "[2 Search]" in screen.text
    found = screen.pane(SearchPane)
    assert found.input.value == "robin sings"
    assert found.question.glob == ""
    await screen.until(lambda: found.list.citations)
    assert found.list.citations[0].path == "birds/robin.md"
    assert found.input.has_focus


async def test_y_copies_the_query_or_all_that_are_marked_each_on_one_line(screen: Desk, copied: list[str]):
    await leave(screen, search("first"), search("two\nlines; rm\x1b[2J"))
    await screen.press("s", "y", "asterisk", "y", "t", "o")
    assert len(copied) == 2
    assert copied[0].startswith("two")
    assert copied[1].split("\n")[0] == "first"
    assert copied[1].count("\n") == 1
    assert not any(STEERS.search(text.replace("\n", "")) for text in copied)


async def test_going_up_stops_following_and_the_last_row_follows_again(screen: Desk):
    await leave(screen, search("one"), search("two"))
    await screen.press("s")
    assert pane(screen).list.current.cells[3] == "two"
    await screen.press("g")
    assert "not following" in screen.text
    await leave(screen, search("three"))
    await shows(screen, "Query", ["one", "two", "three"])
    assert pane(screen).list.current.cells[3] == "one"
    await screen.press("G")
    await leave(screen, search("four"))
    await screen.until(lambda: pane(screen).list.current.cells[3] == "four")


async def test_where_nothing_is_kept_it_is_said(settings: Settings, tmp_path: Path):
    vault = write(tmp_path / "vault", NOTES)
    async with desk(replace(settings, traces=False), vault, now=lambda: NOON) as screen:
        await screen.press("8", "s")
        assert "NOCTUARY_TRACES is no: what is asked is not kept." in screen.text
        await leave(screen, search("of before"))
        await screen.until(lambda: "1 query · NOCTUARY_TRACES is no: none is added" in screen.text)


async def test_a_hostile_query_is_text_in_every_line(wide: Desk):
    payloads = [*PAYLOADS.values()]
    await leave(wide, *(ask(text, trouble=text) for text in payloads))
    await wide.press("s")
    await wide.until(lambda: len(pane(wide).list.rows) == len(payloads))
    shown = ""
    for _ in payloads:
        assert not any(STEERS.search(line) for line in wide.lines)
        shown += wide.text
        await wide.pilot.press("k")
        await wide.pilot.pause()
    assert "OWNED" in shown
    await wide.press("G", "enter")
    assert not any(STEERS.search(line) for line in wide.lines)


async def test_a_trace_wakes_nothing_but_the_view_that_shows_it(screen: Desk, monkeypatch):
    read = []
    monkeypatch.setattr(status_reader.StatusReader, "soon", lambda _self: read.append("status"))
    await screen.press("s", "o")
    fetched = []
    monkeypatch.setattr(LogPane, "request", lambda _self, **_options: fetched.append("rows"))
    topics = screen.engine.subscribe("trace")
    await leave(screen, search("owl"))
    await anext(topics)
    await screen.settle()
    assert (read, fetched) == ([], [])
    await screen.execute("INSERT INTO folder (path, device) VALUES ('/other', 0)")
    await screen.until(lambda: read)


# Tokens


async def test_tokens_stand_by_day_and_purpose_with_todays_sum_against_the_limit(
    settings: Settings, tmp_path: Path
):
    today = datetime.now(UTC).astimezone().replace(hour=12, minute=0, second=0, microsecond=0)
    limited = replace(settings, llm_daily_token_limit=2_000)
    async with desk(limited, write(tmp_path / "vault", NOTES), size=(120, 40), now=lambda: today) as screen:
        await screen.press("8", "t")
        assert "No language model was asked in the last 30 days." in screen.text
        assert "LLM_PROVIDER names one" in screen.text
        yesterday = today - timedelta(days=1)
        await screen.execute(USE, (yesterday, "ask", "old", 5, 6, False, False))
        await screen.execute(USE, (today, "ask", "qwen3:4b", 1000, 100, False, False))
        await screen.execute(USE, (today, "ask", "qwen3:4b", 20, 3, True, True))
        await screen.execute(USE, (today, "write", "qwen3:4b", 70, 7, False, False))
        await shows(screen, "Purpose", ["ask", "write", "ask"])
        days = [f"{today:%Y-%m-%d}", f"{today:%Y-%m-%d}", f"{yesterday:%Y-%m-%d}"]
        assert column(screen, "Day") == days
        assert column(screen, "Read") == ["1,020", "70", "5"]
        assert column(screen, "Failed") == ["✗ 1", "", ""]
        assert "Today 1,200 of 2,000 tokens · the last 30 days" in screen.text
        await screen.press("g")
        told = "ollama/qwen3:4b · 2 calls (1 failed) · about 1,123 tokens: 1,020 read, 103 written"
        assert told in screen.text
        await screen.execute(USE, (today, "write", "qwen3:4b", 800, 0, False, False))
        await screen.until(lambda: "Today 2,000 of 2,000 tokens: no model is asked before mid" in screen.text)
        await screen.press("slash", *"write", "enter")
        assert column(screen, "Purpose") == ["write"]
        assert "Today 2,000 of" in screen.text


async def test_keys_that_mean_nothing_among_the_tokens_say_so(screen: Desk):
    await screen.press("t", "f")
    assert "Days are not followed" in screen.flash
    await screen.press("l")
    assert "Tokens have no levels" in screen.flash
    await screen.press("G", "e")
    assert "There is no row here" in screen.flash
    await screen.execute(USE, (NOON, "ask", "m", 1, 1, False, False))
    await screen.press("R")


async def test_a_line_of_tokens_is_copied_in_words(wide: Desk, copied: list[str]):
    await wide.execute(
        USE.replace("%s, %s, 'ollama'", "now(), %s, 'ollama'"), ("ask", "a\x1b[2Jb", 1, 2, False, False)
    )
    await wide.press("t", "y")
    assert "ask · ollama/a␛[2Jb · 1 call · 3 tokens: 1 read, 2 written" in copied[0]
