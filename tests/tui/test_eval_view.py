"""The Eval view: the last run and those before, run again, a failing question searched, a search labelled."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from engine.notes.evaluation import Evaluation
from engine.text.safe import spelt
from tests.hostile import PAYLOADS, STEERS
from tests.support import eventually
from tests.tui.desk import NOTES, Desk, desk, write
from tui.panes.search import SearchPane
from tui.screens.eval import EvalScreen
from tui.screens.eval_text import sparkline

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings

RIGHT = {"id": "owls", "question": "barn owl", "expect": "citation", "expect_path_contains": "owl.md"}
WRONG = {"id": "wrong", "question": "robin sings", "expect": "citation", "expect_path_contains": "owl.md"}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


@pytest.fixture
def file(settings: Settings) -> Path:
    """The file of our own, which is run when none is named."""
    found = settings.paths.config / "eval.json"
    found.write_text(json.dumps([RIGHT, WRONG]))
    return found


async def indexed(screen: Desk) -> None:
    await screen.engine.notes.index_all()
    await screen.engine.notes.work_until_idle()


def view(screen: Desk) -> EvalScreen:
    assert isinstance(screen.app.screen, EvalScreen)
    return screen.app.screen


async def test_a_run_is_shown_with_what_failed_and_a_question_is_searched(
    settings: Settings, vault: Path, file: Path
) -> None:
    async with desk(settings, vault) as screen:
        await indexed(screen)
        await screen.press("E")
        assert "No run yet." in screen.text
        await screen.press("r")
        await screen.until(lambda: "groundedness: 50.00% (1/2), delta: +0.00%" in screen.text)
        assert "recall@k: 50.00%" in screen.text
        assert [row.cells[:2] for row in view(screen)._rows.rows] == [("✗", "robin sings"), ("✓", "barn owl")]
        await screen.press("enter")
        pane = screen.pane(SearchPane)
        assert screen.up is pane
        await screen.until(lambda: pane.question.text == "robin sings" and pane.list.citations)


async def test_past_runs_are_a_line_of_bars_with_figures(settings: Settings, vault: Path, file: Path) -> None:
    async with desk(settings, vault) as screen:
        await indexed(screen)
        await screen.engine.evaluation.run()
        file.write_text(json.dumps([RIGHT]))
        await screen.engine.evaluation.run()
        await screen.press("E")
        assert "▁█  2 runs, 50% to 100%" in screen.text
        await screen.press("r")
        await screen.until(lambda: "3 runs" in screen.text)


def test_the_bars_show_a_change_and_one_run_alone() -> None:
    assert sparkline([0.5, 0.75, 1.0]) == "▁▅█"
    assert sparkline([1.0]) == "█"
    assert sparkline([0.4, 0.4]) == "▅▅"
    assert sparkline([]) == ""


async def test_a_run_is_ended_by_escape_and_leaves_nothing(
    settings: Settings, vault: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def endless(*_: object) -> object:
        asked.set()
        return await asyncio.Event().wait()

    async with desk(settings, vault) as screen:
        await indexed(screen)
        await screen.press("E")
        monkeypatch.setattr(Evaluation, "_ask", endless)
        await screen.pilot.press("r")
        await asked.wait()
        await screen.pilot.press("r")
        await eventually(lambda: "The questions are being asked" in screen.text)
        await screen.press("escape")
        assert "The run was ended; nothing of it is kept." in screen.text
        assert await screen.engine.evaluation.history() == []
        await screen.press("escape")
        assert not isinstance(screen.app.screen, EvalScreen)


async def test_a_file_that_is_none_is_said_and_the_last_run_stays(
    settings: Settings, vault: Path, file: Path
) -> None:
    async with desk(settings, vault) as screen:
        await indexed(screen)
        await screen.engine.evaluation.run()
        file.write_text("[")
        await screen.press("E", "r")
        await screen.until(lambda: "is not JSON" in screen.text)
        assert "groundedness: 50.00%" in screen.text


async def test_the_inbox_leads_to_it_while_questions_fail(
    settings: Settings, vault: Path, file: Path
) -> None:
    async with desk(settings, vault) as screen:
        await indexed(screen)
        await screen.engine.evaluation.run()
        await screen.press("1", "R")
        assert "Labelled questions that fail (50.00%, +0.00%)" in screen.text
        await screen.press("enter")
        assert isinstance(screen.app.screen, EvalScreen)


async def test_a_search_is_labelled_by_a_key(settings: Settings, vault: Path) -> None:
    async with desk(settings, vault) as screen:
        await indexed(screen)
        await screen.press("2", "escape", "L")
        assert "There is no citation here" in screen.flash or "There is no query" in screen.flash
        await screen.press("slash")
        await screen.type("barn owl")
        await screen.press("enter")
        await screen.press("L")
        await screen.until(lambda: "barn-owl is answered by birds/owl.md:L1-L3" in screen.flash)
        await screen.press("0")
        await screen.until(lambda: "barn-owl-2 is answered by nothing" in screen.flash)
        rows = json.loads(screen.engine.evaluation.own_file.read_text())
        assert [row["expect"] for row in rows] == ["citation", "negative"]


async def test_hostile_questions_are_shown_and_do_nothing(
    settings: Settings, vault: Path, file: Path
) -> None:
    payloads = [payload for payload in PAYLOADS.values() if payload.strip()]
    file.unlink()
    async with desk(settings, vault, size=(80, 40)) as screen:
        await indexed(screen)
        for number, text in enumerate(payloads):
            await screen.engine.evaluation.add(text, None, identity=f"{number}{spelt(text)}")
        await screen.engine.evaluation.run()
        await screen.press("E")
        for _ in payloads:
            await screen.press("j")
            assert not STEERS.search("".join(screen.lines))
