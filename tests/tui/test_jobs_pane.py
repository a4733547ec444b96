"""The jobs pane: the queue walked, filtered, marked and tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tui.desk import NOON, NOTES, desk, fill_queue, write
from tui.panes.jobs import WINDOW, JobsPane

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


async def test_jobs_are_counted_by_status_and_s_shows_one(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3")
        assert "[all 50] ○ pending 5  ◐ working 0  ✗ failed 5  ✓ done 40" in screen.text
        await screen.press("s", "s", "s")
        assert "[✗ failed 5]" in screen.text
        rows = screen.pane(JobsPane).list.rows
        assert [row.cells[5] for row in rows] == [f"notes/000{n}.md" for n in (10, 20, 30, 40, 50)]
        assert [row.cells[4] for row in rows] == ["10m", "20m", "30m", "40m", "50m"]


async def test_the_whole_queue_can_be_walked_through_a_window(settings: Settings):
    jobs = 3 * WINDOW
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, jobs)
        await screen.press("3")
        pane = screen.pane(JobsPane)
        seen = [pane.list.current.key]
        for _ in range(jobs - 1):
            pane.do_down()
            if pane.list.current.key == seen[-1]:
                await screen.settle()
            seen.append(pane.list.current.key)
        assert seen == [str(number) for number in range(jobs, 0, -1)]
        assert len(pane.list.rows) <= WINDOW
        await screen.press("g")
        assert pane.list.current.key == str(jobs)
        await screen.press("G")
        assert pane.list.current.key == "1"
        assert f"jobs {jobs - WINDOW + 1:,}-{jobs:,} of {jobs:,}" in screen.text


async def test_the_last_of_filtered_jobs_is_found_though_their_number_is_unknown(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 2000)
        await screen.press("3", "slash")
        await screen.type("notes/01")
        await screen.press("enter", "G")
        assert screen.pane(JobsPane).list.current.cells[5] == "notes/01999.md"


async def test_the_filter_asks_for_path_and_error_and_escape_drops_it(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "slash")
        await screen.type("UTF-16")
        assert "5 jobs · with “UTF-16”" in screen.text
        await screen.press("enter", "j")
        assert screen.pane(JobsPane).list.cursor == 1
        await screen.press("escape")
        assert "50 jobs" in screen.text


async def test_letters_in_the_filter_are_text_and_not_actions(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "slash")
        await screen.type("rqs?:1u*")
        pane = screen.pane(JobsPane)
        assert pane.filter_text == "rqs?:1u*"
        assert pane.status is None
        assert "No row has “rqs?:1u*”." in screen.text


async def test_n_goes_to_the_next_match_also_after_the_filter_is_gone(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "n")
        assert "No filter yet: / sets one" in screen.flash
        await screen.press("slash")
        await screen.type("0007")
        await screen.press("escape", "g", "n")
        pane = screen.pane(JobsPane)
        assert pane.list.current.cells[5] == "notes/00007.md"
        await screen.press("N")
        assert pane.list.current.cells[5] == "notes/00007.md"


async def test_the_cursor_stays_on_its_row_when_rows_come_above_it(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "j", "j", "j")
        pane = screen.pane(JobsPane)
        key, height = pane.list.current.key, next(i for i, line in enumerate(screen.lines) if line[0] == "▸")
        await screen.execute("UPDATE job SET path = path || '.old'")
        await fill_queue(screen, 7)
        await screen.until(lambda: "57 jobs" in screen.text)
        assert pane.list.current.key == key
        assert pane.list.cursor == 10
        await screen.press("k", "j")
        assert next(i for i, line in enumerate(screen.lines) if line[0] == "▸") >= height


async def test_marks_are_kept_by_row_and_undone(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 20)
        await screen.press("3", "space", "space")
        assert "20 jobs · 2 marks" in screen.text
        await screen.execute("UPDATE job SET attempts = attempts + 1")
        await screen.press("R")
        assert "20 jobs · 2 marks" in screen.text
        assert sum(line[1] == "●" for line in screen.lines) == 2
        await screen.press("asterisk")
        assert "20 marks" in screen.text
        await screen.press("u")
        assert "2 marks" in screen.text
        await screen.press("u", "u")
        assert "mark" not in "".join(screen.lines[:-1])
        await screen.press("u")
        assert "Nothing to undo" in screen.flash


async def test_all_are_marked_also_outside_the_window_and_none_is_lost_when_copied(
    settings: Settings, copied: list[str]
):
    jobs = 3 * WINDOW
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, jobs)
        await screen.press("3", "asterisk")
        assert f"{jobs:,} marks" in screen.text
        await screen.press("G", "y")
        assert len(set(copied[-1].splitlines())) == jobs
        await screen.press("asterisk")
        assert "mark" not in "".join(screen.lines[:-1])
        await screen.press("slash")
        await screen.type("notes/000")
        await screen.press("enter", "asterisk", "escape", "y")
        assert len(copied[-1].splitlines()) == 99


async def test_what_is_copied_of_rows_is_one_line_each_and_holds_nothing_a_terminal_obeys(
    settings: Settings, copied: list[str]
):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 2)
        await screen.execute("UPDATE job SET path = path || %s", ("\nrm -rf\x1b[201~\x1b[2J",))
        await screen.press("3", "y")
        await screen.press("asterisk", "y")
    one = "/vault/notes/00001.md␊rm -rf␛[201~␛[2J"
    assert copied[0] == one
    assert sorted(copied[1].split("\n")) == [one, one.replace("1.md", "2.md")]


async def test_retry_takes_the_marks(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "s", "s", "s", "space", "space", "r")
        await screen.until(lambda: "✗ failed 3" in screen.text)
        assert "mark" not in "".join(screen.lines[:-1])


async def test_retry_of_all_is_asked_first_and_the_asking_key_does_not_confirm(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "r", "r", "enter")
        assert "Retry all 5 failed jobs?" in screen.text
        assert "✗ failed 5" in screen.text
        await screen.press("escape")
        assert (await screen.engine.notes.job_counts()).failed == 5
        await screen.press("r", "y")
        await screen.until(lambda: "✗ failed 0" in screen.text)
        assert "5 jobs queued again" in screen.flash
        await screen.press("r")
        assert "No job has failed: there is nothing to retry" in screen.flash


async def test_retry_of_all_under_a_filter_takes_those_that_match(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 50)
        await screen.press("3", "slash")
        await screen.type("notes/0003")
        await screen.press("enter", "r")
        assert "Retry the failed jobs with “notes/0003”?" in screen.text
        await screen.press("y")
        await screen.until(lambda: "✗ failed 4" in screen.text)


async def test_an_error_is_shown_in_full(settings: Settings):
    error = "line one is long " * 20 + "\nand its very end"
    async with desk(settings, now=lambda: NOON) as screen:
        await fill_queue(screen, 10)
        await screen.execute("UPDATE job SET error = %s WHERE status = 'failed'", (error,))
        await screen.press("3", "s", "s", "s", "i")
        assert "and its very end" in screen.text
        assert "2026-03-01" in screen.text or "11:50" in screen.text
        await screen.press("q")
        assert screen.app.is_running
        assert "[✗ failed 1]" in screen.text


async def test_the_inbox_leads_to_the_passages_without_a_vector_and_they_are_retried(
    settings: Settings, vault: Path
):
    error = "The model read no word of it: " + "too odd " * 30 + "end."
    async with desk(settings, vault) as screen:
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle(embed=False)
        await screen.execute("UPDATE embedding SET state = 'failed', error = %s", (error,))
        await screen.until(lambda: "Passages the model could not read" in screen.text)
        await screen.press("enter")
        pane = screen.pane(JobsPane)
        assert "[✗ vectors 3]" in screen.text
        assert [row.cells[5] for row in pane.list.rows] == [
            "birds/owl.md:L1-L3",
            "birds/robin.md:L1-L3",
            "work/deploy.md:L1-L3",
        ]
        assert "end." in pane.describe(pane.list.rows[0]).plain
        await screen.press("i")
        assert "Passage without a vector" in screen.text
        await screen.press("escape", "space", "r")
        assert len(pane.list.rows) == 2
        await screen.press("r")
        assert "Retry all 2 passages without a vector?" in screen.text
        await screen.press("y")
        assert pane.list.rows == () or not pane.list.rows
        assert "could embed every passage" in screen.text
