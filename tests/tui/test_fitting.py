"""What is shown fits the terminal: nothing is cut that there is room for, and one thing is said as one."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.notes.model import DriftCause, DriftReport, DriftRow
from tests.tui.desk import NOON, NOTES, desk, fill_queue, write
from tui.panes.drift import totals_line
from tui.text import all_of

if TYPE_CHECKING:
    from engine.settings import Settings


async def test_a_table_that_scrolls_cuts_its_paths_at_one_side_only(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 60)
        await screen.execute("UPDATE job SET path = repeat('deep/', 20) || path")
        await screen.press("3")
        rows = [text for text in screen.lines if "…" in text and "ingest" in text]
        assert len(rows) > 10
        assert all(text.rstrip(" ▁▂▃▄▅▆▇█▊").endswith(".md") for text in rows), rows[0]


def _report(**counts: int) -> DriftReport:
    rows = tuple(
        DriftRow(DriftCause[cause], Path("/vault"), f"{cause}{number}.md", "")
        for cause, many in counts.items()
        for number in range(many)
    )
    return DriftReport(datetime.now(UTC), rows, 0, 0, 0.0)


def test_counts_of_drift_take_one_line_and_those_that_matter_stay():
    few = totals_line(_report(ORPHANED=3), None, 78)
    assert few.plain == "[all 3] + not indexed 0 - orphaned 3 ~ changed 0 ≠ other model 0 ✗ failed 0"
    many = totals_line(_report(NOT_INDEXED=14_000, JOB_FAILED=1_200), DriftCause.JOB_FAILED, 60)
    assert many.plain == "all 15,200 + not indexed 14,000 [✗ failed 1,200]"
    narrow = totals_line(_report(**dict.fromkeys(DriftCause.__members__, 1_234)), DriftCause.CHANGED, 70)
    assert narrow.plain == "all 6,170 + 1,234 - 1,234 [~ changed 1,234] ≠ 1,234 ✗ 1,234"


@pytest.mark.parametrize(("key", "most"), [("colon", 120), ("F", 120), ("question_mark", 120)])
async def test_a_dialog_takes_the_room_of_a_large_terminal(
    settings: Settings, tmp_path: Path, key: str, most: int
):
    for width, wanted in ((80, 76), (200, most)):
        async with desk(settings, write(tmp_path / "vault", NOTES), size=(width, 50)) as screen:
            await screen.press("3", key)
            box = screen.app.screen.query_one(".box")
            assert box.outer_size.width == wanted
            assert box.outer_size.height <= 45


async def test_the_palette_of_a_large_terminal_cuts_nothing(settings: Settings, tmp_path: Path):
    async with desk(settings, write(tmp_path / "vault", NOTES), size=(200, 50)) as screen:
        await screen.press("3", "colon")
        assert "…" not in "".join(text[40:160] for text in screen.lines if "part of a command" not in text)


async def test_what_has_no_age_has_a_dash(settings: Settings, tmp_path: Path):
    vault = write(tmp_path / "vault", NOTES)
    async with desk(settings, vault, size=(120, 30)) as screen:
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        (vault / "birds/robin.md").unlink()
        await screen.press("4", "R")
        assert screen.up.list.rows[0].cells[-1] == "-"
        await screen.press("1", "R")
        assert [row.cells[2] for row in screen.up.list.rows] == ["-"]


def test_one_is_not_called_all():
    assert all_of(1, "failed job") == "the failed job"
    assert all_of(1_200, "failed job") == "all 1,200 failed jobs"


async def test_a_pane_that_reads_does_not_say_that_the_database_opens(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with desk(settings, write(tmp_path / "vault", NOTES)) as screen:
        said = []
        put = type(screen.app.panes[3]).shown
        monkeypatch.setattr(
            type(screen.app.panes[3]), "shown", lambda pane, *words: (said.append(words), put(pane, *words))
        )
        await screen.press("4")
        assert said[0][-1] == "Comparing disk and index…"


@pytest.mark.parametrize("width", [80, 100, 120, 200])
async def test_no_line_of_the_help_is_broken_anew(settings: Settings, tmp_path: Path, width: int):
    async with desk(settings, write(tmp_path / "vault", NOTES), size=(width, 50)) as screen:
        await screen.press("3", "question_mark")
        begun = [text for text in screen.lines if re.match(r"[^│]*│ [^ │]", text)]
        ends = {"first)", "list.previous-match", "list.half-down"}
        assert len(begun) > 20
        assert not any(text.split("│")[1].strip() in ends for text in begun)
