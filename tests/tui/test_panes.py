"""What the panes show and do, on the real engine and database at 80x24."""

from __future__ import annotations

import inspect
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from engine.database import LOST, RECONNECTED
from engine.errors import DatabaseUnavailable
from engine.notes import Notes, drift
from engine.notes.model import DriftCause, JobStatus
from tests.support import eventually
from tests.tui.desk import NOON, NOTES, desk, fill_queue, write
from tui.panes.drift import DriftPane
from tui.panes.inbox import InboxPane
from tui.panes.jobs import JobsPane
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
        for key in "67":
            await screen.press(key)
            assert "[1 Inbox]" in screen.text
            assert "1 Inbox · 2 Search · 3 Jobs · 4 Drift · 5 Lessons · 8 Log" in screen.flash
        await screen.press("j")
        assert "? help" in screen.flash


async def test_tab_goes_round_the_panes_both_ways(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        seen = []
        for _ in range(6):
            await screen.press("tab")
            seen.append(screen.up.number)
        assert seen == [2, 3, 4, 5, 8, 1]
        await screen.press("shift+tab")
        assert screen.up.number == 8


async def test_escape_never_quits_and_backspace_never_acts(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        for number in "134582":
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
        screen.app.status_reader.now()
        await screen.settle()
        assert "Stale" not in screen.text
        assert "db ✓" in screen.text


async def test_work_that_is_superseded_before_it_began_leaves_nothing_behind(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        begun = []

        async def work() -> None:
            begun.append(True)

        first, second = work(), work()
        screen.app.spawn(first, "test", "test")
        screen.app.spawn(second, "test", "test")
        await screen.settle()
        assert begun == [True]
        assert inspect.getcoroutinestate(first) == inspect.CORO_CLOSED


async def test_a_lost_connection_is_said_before_anything_is_asked(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.settle()
        assert "db ✓" in screen.text
        screen.engine.database.feed.tell(LOST)
        await eventually(lambda: "✗ db away" in screen.text)
        screen.engine.database.feed.tell(RECONNECTED)
        await eventually(lambda: "db ✓" in screen.text)


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


async def test_after_the_last_of_many_changes_the_status_is_counted_exactly(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        for number in range(12):
            write(vault, {f"more/{number}.md": f"# Note {number}\n"})
            await screen.engine.notes.index_all()
            await screen.engine.notes.work_until_idle(embed=False)
        await screen.until(lambda: "15 notes" in screen.text)
        assert "queue 0" in screen.text
