"""The drift pane: differences told by cause, marked and repaired."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.tui.desk import NOTES, desk, write
from tui.panes.drift import DriftPane

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


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


async def test_what_no_job_can_mend_is_said_so(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        (vault / os.fsdecode(b"\xff.md")).write_text("named by no letters\n")
        await screen.press("4", "R", "space", "r")
        await screen.until(lambda: "No job can mend this" in screen.flash)


async def test_a_folder_that_is_gone_is_told_above_the_rows(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        vault.rename(vault.with_name("elsewhere"))
        await screen.press("4", "R")
        told = "".join(line.strip() for line in screen.lines[1:5])  # a long path takes lines of its own
        assert told.startswith("!")
        assert str(vault)[:20] in told


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


async def test_a_mark_builds_no_row_anew(settings: Settings, vault: Path):
    async with desk(settings, vault) as screen:
        await screen.press("4")
        pane = screen.pane(DriftPane)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pane, "rows", lambda _: pytest.fail("rows were built"))
            pane.do_mark()
            pane.do_mark_all()
            pane.do_unmark()
            pane.do_mark()  # nothing else runs before the patch is undone
        await screen.settle()
        assert "3 rows · 2 marks" in screen.text
        assert screen.text.count("●") == 2
        await screen.press("escape")
        assert "●" not in screen.text
