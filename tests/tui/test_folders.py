"""The first run asks for a folder; later ones are added, listed and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tui.desk import NOTES, desk, write

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with two that begin alike and one hidden."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "home" / "notes-private", NOTES)
    write(tmp_path / "home" / "notes-work", NOTES)
    write(tmp_path / "home" / ".hidden", NOTES)
    return tmp_path / "home"


async def test_the_first_run_asks_for_a_folder_completes_it_and_remembers_it(settings: Settings, home: Path):
    async with desk(settings, asked=True) as screen:
        assert "Which folder of Markdown notes shall be searched?" in screen.text
        assert "notes-private" in screen.text
        assert ".hidden" not in screen.text
        await screen.press("n", "tab")
        assert "~/notes-" in screen.text
        await screen.press("p", "tab", "enter")
        await screen.until(lambda: "Added" in screen.flash)
        assert [folder.path for folder in await screen.engine.notes.folders()] == [home / "notes-private"]
    async with desk(settings, asked=True) as screen:
        assert "Which folder" not in screen.text


async def test_a_folder_is_chosen_with_the_arrows(settings: Settings, home: Path):
    async with desk(settings, asked=True) as screen:
        await screen.press("down", "tab", "enter")
        await screen.until(lambda: "Added" in screen.flash)
        assert [folder.path.name for folder in await screen.engine.notes.folders()] == ["notes-work"]


async def test_a_folder_that_is_not_there_is_said_and_can_be_corrected(settings: Settings, home: Path):
    async with desk(settings, asked=True) as screen:
        await screen.type("nowhere")
        await screen.press("enter")
        await screen.until(lambda: "does not exist" in screen.text)
        await screen.press(*["backspace"] * 7)
        await screen.type("notes-work")
        assert "does not exist" not in screen.text
        await screen.press("enter")
        await screen.until(lambda: "Added" in screen.flash)


async def test_escape_leaves_the_question_and_the_app_runs_on(settings: Settings, home: Path):
    async with desk(settings, asked=True) as screen:
        await screen.press("escape")
        assert screen.app.is_running
        assert "no folder" in screen.text
        await screen.press("A")
        assert "Add a folder of notes" in screen.text


async def test_folders_are_listed_and_one_is_removed_after_a_yes(settings: Settings, home: Path):
    async with desk(settings, home / "notes-work") as screen:
        await screen.engine.notes.add_folder(home / "notes-private")
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        await screen.press("F")
        assert "notes-private" in screen.text
        assert "notes-work" in screen.text
        await screen.press("d", "d", "enter")
        assert "Out of the index: 3 notes. Nothing on the disk is touched." in screen.text
        await screen.press("n")
        assert len(await screen.engine.notes.folders()) == 2
        await screen.press("d", "y")
        await screen.until(lambda: "Removed" in screen.text)
        assert [folder.path.name for folder in await screen.engine.notes.folders()] == ["notes-work"]
        assert (home / "notes-private/birds/owl.md").exists()
        await screen.press("escape")
        assert screen.app.is_running
