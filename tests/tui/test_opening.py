"""Opening: paint first, then the engine; a server that is away is tried again, a refusal is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import tui.app
from engine import Engine, services
from engine.errors import DatabaseUnavailable, SchemaError, SettingsError
from engine.notes import Notes
from tests.support import eventually
from tests.tui.desk import NOTES, Desk, desk, write
from tui import work
from tui.app import NoctuaryApp

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


async def test_the_screen_is_painted_before_the_engine_is_asked_for(settings: Settings, monkeypatch):
    seen = []

    async def open_(_settings, *, application, on_state):
        seen.append(screen.text)
        on_state("recovering")
        raise SchemaError("It is newer.", remedy="Update.")

    monkeypatch.setattr(Engine, "open", open_)
    app = NoctuaryApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Desk(pilot, app)
        await eventually(lambda: seen)
        await screen.settle()
        assert "[1 Inbox]" in seen[0]
        assert "Database schema" in screen.text
        assert "Update." in screen.text
        await screen.press("escape")
        assert "Database schema: It is newer. Update." in screen.text
        assert app.is_running


async def test_a_server_that_is_away_is_tried_again_until_it_is_back(
    settings: Settings, tmp_path: Path, monkeypatch
):
    tries = []
    open_ = Engine.open

    async def away(*arguments, **options):
        tries.append(1)
        if len(tries) < 3:
            raise DatabaseUnavailable("It does not answer.", remedy="Start it.")
        return await open_(*arguments, **options)

    monkeypatch.setattr(Engine, "open", away)
    monkeypatch.setattr(tui.app, "RETRY_SECONDS", 0.01)
    async with desk(settings, write(tmp_path / "vault", NOTES)) as screen:
        assert len(tries) == 3
        assert "db ✓" in screen.text
        assert "Nothing waits for you." in screen.text


async def test_a_pane_that_is_asked_for_before_the_engine_is_open_says_so(settings: Settings, monkeypatch):
    async def away(*_arguments, **_options):
        raise DatabaseUnavailable("It does not answer.", remedy="Start it.")

    monkeypatch.setattr(Engine, "open", away)
    app = NoctuaryApp(settings)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Desk(pilot, app)
        await eventually(lambda: "✗ db away" in screen.text)
        await pilot.press("3", "r")
        await eventually(lambda: "The jobs were not read yet" in screen.flash)
        assert "It does not answer. Start it." in screen.text
        await pilot.press("A")
        await eventually(lambda: "The database is not open yet" in screen.flash)


async def test_the_folder_of_the_command_line_is_added_and_its_notes_are_found(
    settings: Settings, tmp_path: Path
):
    async with desk(settings, write(tmp_path / "vault", NOTES), live=True) as screen:
        await eventually(lambda: "3 notes" in screen.text)
        await eventually(lambda: "◉ events" in screen.text)
        await eventually(lambda: "vectors ✓" in screen.text)
        write(tmp_path / "vault", {"new.md": "# New\n"})
        await eventually(lambda: "4 notes" in screen.text)


async def test_a_folder_that_cannot_be_added_is_shown_and_the_others_are_followed(
    settings: Settings, tmp_path: Path
):
    vault = write(tmp_path / "vault", NOTES)
    settings = replace(settings, corpus_path=(tmp_path / "unmounted", vault))
    async with desk(settings, vault / "birds", live=True) as screen:
        await eventually(lambda: "Check its spelling." in screen.text and "overlaps with" in screen.text)
        await screen.press("escape")
        await eventually(lambda: "2 notes" in screen.text)


async def test_a_database_that_falters_at_the_start_does_not_keep_the_services_from_starting(
    settings: Settings, tmp_path: Path, monkeypatch
):
    tries = []
    folders = Notes.folders

    async def away(notes):
        tries.append(1)
        if len(tries) < 3:
            raise DatabaseUnavailable("It does not answer.")
        return await folders(notes)

    monkeypatch.setattr(Notes, "folders", away)
    monkeypatch.setattr(work, "ASK_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(services, "FIRST_PAUSE", 0.01)
    async with desk(settings, write(tmp_path / "vault", NOTES), live=True) as screen:
        await eventually(lambda: "3 notes" in screen.text)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark", "ansi-light"])
async def test_every_theme_shows_every_pane(settings: Settings, tmp_path: Path, theme: str):
    async with desk(settings, write(tmp_path / "vault", NOTES)) as screen:
        while screen.app.theme != theme:
            await screen.press("T")
        for number in "12348":
            await screen.press(number)
            assert f"[{number} " in screen.text
            await screen.press("escape")


def test_keys_that_cannot_be_used_are_refused_before_the_screen_is_taken(settings: Settings):
    with pytest.raises(SettingsError, match="no action"):
        NoctuaryApp(replace(settings, keys={"no.action": "x"}))
