"""The history of queries: bounded, distinct, kept across sessions, unharmed by what stands in its file."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tui.history import LONGEST, History

if TYPE_CHECKING:
    from pathlib import Path


def remember(history: History, *queries: str) -> None:
    for query in queries:
        if history.add(query):
            history.save(query)


def test_up_walks_to_older_queries_and_down_comes_back_to_the_draft():
    history = History(None)
    remember(history, "one", "two")
    assert history.older("dra") == "two"
    assert history.older("two") == "one"
    assert history.older("one") is None
    assert history.newer() == "two"
    assert history.newer() == "dra"
    assert history.newer() is None
    assert not history.walking


def test_up_skips_the_query_that_stands_in_the_input_already():
    history = History(None)
    remember(history, "one", "two")
    assert history.older("two") == "one"


def test_a_repeated_query_is_kept_once_at_its_newest_place():
    history = History(None)
    remember(history, "one", "two", "one ", "  ", "one")
    assert history.entries == ("two", "one")


def test_the_next_session_knows_the_queries_of_this_one(tmp_path: Path):
    file = tmp_path / "state" / "history"
    remember(History(file), "eins", "zwei\x1b[2J", "日本")
    later = History(file)
    later.add("typed before the file was read")
    later.load()
    assert later.entries == ("eins", "zwei\x1b[2J", "日本", "typed before the file was read")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_two_sessions_do_not_lose_each_others_queries(tmp_path: Path):
    first, second = History(tmp_path / "h"), History(tmp_path / "h")
    remember(first, "a")
    remember(second, "b")
    remember(first, "c")
    second.load()
    assert set(second.entries) == {"a", "b", "c"}


def test_no_control_character_reaches_the_file(tmp_path: Path):
    remember(History(tmp_path / "h"), "a\x1b]52;c;AAAA\x07\x9b2J\u202eb\nc")
    raw = (tmp_path / "h").read_bytes()
    assert raw.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in raw.rstrip(b"\n"))


def test_damaged_lines_cost_only_themselves(tmp_path: Path):
    good = json.dumps("good")
    bad = ["{", "3", "null", '["x"]', '"\\ud800"', '"' + "x" * 20_000 + '"', "\x00", '"  "']
    (tmp_path / "h").write_bytes("\n".join([*bad, good]).encode() + b"\n\xff\xfe")
    history = History(tmp_path / "h")
    history.load()
    assert history.entries == ("good",)


def test_an_overlong_or_unsendable_query_is_not_remembered():
    history = History(None)
    remember(history, "x" * (LONGEST + 1), "\ud800")
    assert history.entries == ()


def test_the_file_is_written_anew_when_it_has_grown_to_twice_what_is_kept(tmp_path: Path):
    file = tmp_path / "h"
    writer = History(file, kept=10)
    remember(writer, *(f"q{n}" for n in range(25)))
    assert len(file.read_text().splitlines()) == 25
    reader = History(file, kept=10)
    reader.load()
    assert reader.entries == tuple(f"q{n}" for n in range(15, 25))
    assert file.read_text().splitlines() == [json.dumps(q) for q in reader.entries]
    assert [path.name for path in tmp_path.iterdir()] == ["h"]


@given(st.lists(st.text(max_size=30), max_size=40))
def test_whatever_is_asked_is_kept_distinct_and_walkable(queries: list[str]):
    history = History(None, kept=8)
    for query in queries:
        history.add(query)
    assert len(set(history.entries)) == len(history.entries) <= 8
    seen = []
    shown = history.older("\x00draft")
    while shown is not None:
        seen.append(shown)
        shown = history.older(shown)
    assert tuple(reversed(seen)) == history.entries
