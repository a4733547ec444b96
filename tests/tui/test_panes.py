"""What the panes show and do, on the real engine and database at 80x24."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from engine.errors import DatabaseUnavailable
from engine.notes import Notes, drift
from engine.notes.model import DriftCause, JobStatus
from tests.tui.desk import NOON, NOTES, desk, fill_queue, write
from tui.panes.drift import DriftPane
from tui.panes.inbox import InboxPane
from tui.panes.jobs import WINDOW, JobsPane
from tui.panes.log import LogPane

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


# Everywhere


async def test_keys_of_panes_that_come_later_only_say_which_there_are(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        for key in "567":
            await screen.press(key)
            assert "[1 Inbox]" in screen.text
            assert "1 Inbox · 2 Search · 3 Jobs · 4 Drift · 8 Log" in screen.flash
        await screen.press("j")
        assert "? help" in screen.flash


async def test_tab_goes_round_the_panes_both_ways(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        seen = []
        for _ in range(5):
            await screen.press("tab")
            seen.append(screen.up.number)
        assert seen == [2, 3, 4, 8, 1]
        await screen.press("shift+tab")
        assert screen.up.number == 8


async def test_escape_never_quits_and_backspace_never_acts(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        for number in "13482":
            await screen.press(number)
            before = screen.text
            await screen.press("escape", "backspace", "escape")
            assert screen.app.is_running
            if number != "2":
                assert screen.text == before


async def test_ctrl_c_does_not_quit_but_says_what_does(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.press("ctrl+c")
        assert "q quits" in screen.flash
        assert screen.app.is_running


async def test_a_pane_that_cannot_read_keeps_its_rows_and_calls_them_stale(
    settings: Settings, vault: Path, monkeypatch
):
    async with desk(settings, vault) as screen:
        await screen.engine.notes.index_all()
        await screen.press("3")
        assert "birds/owl.md" in screen.text

        async def fail(*_args: object, **_options: object) -> None:
            raise DatabaseUnavailable("The server went away.")

        with monkeypatch.context() as patch:
            patch.setattr(Notes, "job_counts", fail)
            patch.setattr(Notes, "status", fail)
            await screen.press("R")
            assert "✗ Stale: Database unavailable: The server went away." in screen.text
            assert "birds/owl.md" in screen.text
            assert "✗ db away" in screen.text
        await screen.press("R")
        screen.app.read_status()
        await screen.settle()
        assert "Stale" not in screen.text
        assert "db ✓" in screen.text


async def test_a_fault_of_ours_is_said_and_the_pane_can_be_read_again(
    settings: Settings, vault: Path, monkeypatch
):
    async with desk(settings, vault) as screen:
        with monkeypatch.context() as patch:
            patch.setattr(Notes, "job_counts", None)
            await screen.press("3")
            assert "Fault while trying to read jobs" in screen.flash
        await screen.press("R")
        assert "No jobs yet" in screen.text


async def test_rows_appear_without_a_key_when_another_process_queues_them(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.press("3")
        assert "No jobs yet" in screen.text
        await screen.engine.notes.index_all()
        await screen.until(lambda: "birds/owl.md" in screen.text)


# Jobs


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


# Drift


async def test_drift_is_told_by_cause_and_one_key_repairs_it(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        notes = screen.engine.notes
        await notes.index_all()
        await notes.work_until_idle()
        write(vault, {"new.md": "new\n", "birds/owl.md": "# Owls\n\nchanged and longer\n"})
        (vault / "birds/robin.md").unlink()
        await screen.press("4", "R")
        assert [row.cells[0] for row in screen.pane(DriftPane).list.rows] == [
            "+ not indexed",
            "- orphaned",
            "~ changed",
        ]
        await screen.press("c", "c")
        assert [row.cells[1] for row in screen.pane(DriftPane).list.rows] == ["birds/robin.md"]
        await screen.press("c", "c", "c", "c", "r")
        assert "Repair all 3 rows shown?" in screen.text
        await screen.press("r", "y")
        await screen.until(lambda: "3 jobs queued" in screen.flash)
        await notes.work_until_idle()
        await screen.until(lambda: "The index is true to the disk." in screen.text)


async def test_repair_takes_the_marks_only(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.press("4", "space", "r")
        await screen.until(lambda: "1 job queued" in screen.flash)
        counts = await screen.engine.notes.job_counts()
        assert counts.pending == 1


async def test_a_folder_that_is_gone_is_told_above_the_rows(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        vault.rename(vault.with_name("elsewhere"))
        await screen.press("4", "R")
        assert screen.lines[1].startswith(f" ! {str(vault)[:20]}")


async def test_an_orphaned_row_cannot_be_opened_and_says_why(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        (vault / "birds/robin.md").unlink()
        await screen.press("4", "R", "e")
        assert "gone from the disk" in screen.flash


async def test_keys_that_need_a_row_say_so(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.press("8")
        for key in ("space", "y", "e", "asterisk"):
            await screen.press("l", "l", key, "l")
        await screen.press("3", "y")
        assert "There is no row here" in screen.flash
        await screen.press("i")
        assert "There is no job here" in screen.flash


# Inbox


async def test_the_inbox_counts_what_waits_and_enter_goes_there(settings: Settings):
    async with desk(settings, now=lambda: NOON) as screen:
        assert "Nothing waits for you." in screen.text
        await fill_queue(screen, 50)
        await screen.until(lambda: "could not be indexed" in screen.text)
        [row] = screen.pane(InboxPane).list.rows
        assert row.cells == ("5", "Notes that could not be indexed", "50m ago", "3 Jobs")
        await screen.press("enter")
        assert "[3 Jobs]" in screen.text
        assert screen.pane(JobsPane).status is JobStatus.FAILED
        assert "[✗ failed 5]" in screen.text


async def test_the_inbox_goes_to_a_cause_of_drift(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        survey = await drift.survey(screen.engine.database, (await screen.engine.notes.folders())[0])
        screen.engine.notes._standing.surveyed(survey)  # as the watcher does; no walk is asked for
        await screen.engine.notes._standing.refresh()
        await screen.until(lambda: "Notes not in the index" in screen.text)
        await screen.press("enter")
        assert screen.pane(DriftPane).cause is DriftCause.NOT_INDEXED
        assert "[+ not indexed 3]" in screen.text


async def test_ages_are_worked_out_anew_at_a_key_after_a_minute(settings: Settings):
    present = [NOON]
    async with desk(settings, now=lambda: present[0]) as screen:
        await fill_queue(screen, 10)
        await screen.press("3")
        assert screen.pane(JobsPane).list.rows[0].cells[4] == "1m"
        present[0] += timedelta(hours=2)
        await screen.press("shift")
        assert screen.pane(JobsPane).list.rows[0].cells[4] == "2h"


# Log


async def test_the_log_follows_and_stops_when_going_up(settings: Settings):
    log = logging.getLogger("noctuary.test")
    async with desk(settings) as screen:
        await screen.press("8")
        for number in range(40):
            log.info("record %d", number)
        pane = screen.pane(LogPane)
        await screen.until(
            lambda: pane.list.current is not None and pane.list.current.cells[3] == "record 39"
        )
        assert "following" in screen.text
        await screen.press("k")
        here = pane.list.current.key
        log.warning("one more")
        await screen.until(lambda: pane.list.rows[-1].cells[3] == "one more")
        assert pane.list.current.key == here
        assert "not following" in screen.text
        await screen.press("l")
        assert [row.cells[3] for row in pane.list.rows] == ["one more"]
        await screen.press("l")
        assert "No errors." in screen.text
        await screen.press("l", "f")
        assert pane.list.current.cells[3] == "one more"


async def test_a_record_of_another_thread_is_shown(settings: Settings):
    import threading

    async with desk(settings) as screen:
        await screen.press("8")
        thread = threading.Thread(target=logging.getLogger("noctuary.test").info, args=("from a thread",))
        thread.start()
        thread.join()
        await screen.until(lambda: "from a thread" in screen.text)
