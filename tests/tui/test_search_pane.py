"""Search as you type, on the real engine: what is asked, what is shown, and what is said when nothing is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from engine.errors import DatabaseUnavailable
from engine.notes.model import NO_EVIDENCE, Mode
from tests.support import eventually
from tests.tui.search_console import NOTES, console, write
from tui.panes.base import Shown
from tui.widgets.citation_text import MATCH, passage

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings
    from tests.conftest import Server


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


async def test_citations_come_while_typing_with_an_unfinished_last_word(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("barn ow")
        assert screen.references[0] == "birds/owl.md:L1-L4"
        assert "birds/owl.md:L1-L4" in screen.text
        assert "= same" in screen.text
        assert "dist " in screen.text
        assert "The barn owl hunts at night." in screen.text
        line = next(line for line in passage(screen.current, 70, 2) if "barn" in line.plain)
        marked = {line.plain[s.start : s.end] for s in line.spans if s.style == MATCH}
        assert "barn" in marked
        assert screen.app.focused is screen.pane.input


async def test_what_was_found_is_searched_anew_with_each_question(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("robin")
        assert screen.references[0].startswith("birds/robin.md")
        await screen.press(*["backspace"] * 5)
        assert not screen.references
        assert "Type to search" in screen.text
        await screen.type("migration")
        assert screen.references[0].startswith("work/deploy.md")


async def test_nothing_found_is_said_and_keys_work_without_a_list(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("zzzqqqxx ")
        await screen.press("escape", "m")
        assert screen.pane.question.mode is Mode.KEYWORD
        assert screen.pane.input.value == "zzzqqqxx "
        assert NO_EVIDENCE in screen.text
        assert screen.app.focused is screen.pane


async def test_the_mode_that_empties_the_list_does_not_type_into_the_input(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("nocturnal hunting bird ")
        assert screen.references
        await screen.press("down", "m", "m")
        assert screen.pane.question.mode is Mode.VECTOR
        assert screen.references
        await screen.press("m", "m")
        assert screen.pane.input.value == "nocturnal hunting bird "


async def test_a_folder_that_is_missing_is_asked_for(settings: Settings, tmp_path: Path):
    empty = tmp_path / "empty"
    empty.mkdir()
    async with console(settings, empty) as screen:
        [folder] = await screen.engine.notes.folders()
        await screen.engine.notes.remove_folder(folder.id)
        await screen.type("owl")
        await screen.shows("No folder of notes yet")


async def test_an_index_that_is_not_whole_says_how_far_it_is(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        counted = screen.app.status
        assert counted is not None
        screen.app.status = type(counted)(jobs=type(counted.jobs)(pending=7), index=counted.index)
        screen.pane.status_read()
        await screen.pilot.pause()
        assert "the index is still being built" in screen.text
        assert "7 waiting" in screen.text


async def test_a_search_that_fails_keeps_the_last_citations_and_calls_them_stale(
    settings: Settings, vault: Path, monkeypatch: pytest.MonkeyPatch
):
    async with console(settings, vault) as screen:
        await screen.type("owl ")
        before = screen.references
        search = screen.engine.notes.search

        async def broken(*_args, **_options):
            raise DatabaseUnavailable(
                "The server on socket\x1b[2J [/x] went away.", remedy="It is tried again."
            )

        monkeypatch.setattr(screen.engine.notes, "search", broken)
        await screen.press("end", "x")
        await eventually(lambda: screen.pane.has_class(Shown.FAILED))
        assert screen.references == before
        assert "Stale: Database unavailable: The server on socket␛[2J [/x] went away." in " ".join(
            line.strip() for line in screen.lines
        )
        monkeypatch.setattr(screen.engine.notes, "search", search)
        await screen.press("backspace")
        assert not screen.pane.has_class(Shown.FAILED)


async def running(server: Server) -> int:
    """Searches that run in the server now. Asked as the administrator: others do not see the statements."""
    statement = (
        "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = 'active'"
    )
    [(number,)] = await asyncio.to_thread(server.run, statement)
    return cast("int", number)


async def test_a_superseded_search_is_cancelled_in_the_server_too(
    settings: Settings, server: Server, vault: Path, monkeypatch: pytest.MonkeyPatch
):
    async with console(settings, vault) as screen:
        search = screen.engine.notes.search

        async def slow(query, **options):
            if query == "sl":
                async with screen.engine.database.connection() as connection:
                    await connection.execute("SELECT pg_sleep(60)")
            return await search(query, **options)

        monkeypatch.setattr(screen.engine.notes, "search", slow)
        await screen.pilot.press("s", "l")
        await eventually(lambda: running(server))
        later = screen.pane.set_timer
        screen.pane.set_timer = lambda _seconds, *rest: later(
            3600, *rest
        )  # the new question is not asked yet
        await screen.pilot.press("backspace")
        assert not screen.references

        async def none() -> bool:
            return await running(server) == 0

        await eventually(none)
        screen.pane.set_timer = later
        screen.pane._ask_now()
        await screen.settle()
        assert screen.pane.snapshot is not None
        assert screen.pane.snapshot.question.text == "s"


async def test_an_answer_to_an_old_question_is_never_shown(
    settings: Settings, vault: Path, monkeypatch: pytest.MonkeyPatch
):
    async with console(settings, vault) as screen:
        search = screen.engine.notes.search
        gate = asyncio.Event()
        shown: list[str] = []
        show = screen.pane.show
        screen.pane.show = lambda found: (shown.append(found.question.text), show(found))

        async def stubborn(query, **options):
            result = await search(query, **options)
            if query == "robin":
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    return result  # an answer that comes in spite of all
            return result

        monkeypatch.setattr(screen.engine.notes, "search", stubborn)
        await screen.pilot.press(*"robin")
        await eventually(lambda: any(w.group == "search.fetch" and w.is_running for w in screen.app.workers))
        await screen.type("s and owl ")
        assert screen.pane.snapshot is not None
        assert screen.pane.snapshot.question.text == "robins and owl "
        assert "robin" not in shown
        assert screen.references[0].startswith("birds/")


async def test_a_saved_note_is_found_without_a_key(settings: Settings, vault: Path):
    async with console(settings, vault, live=True) as screen:
        await screen.type("wallcreeper ")
        before = screen.references
        (vault / "birds/creeper.md").write_text("# Creepers\n\nA wallcreeper climbs.\n")
        await eventually(lambda: any("creeper.md" in reference for reference in screen.references))
        assert not any("creeper.md" in reference for reference in before)
        await screen.shows("birds/creeper.md:L1-L3")


async def test_what_has_not_changed_is_not_painted_again(
    settings: Settings, vault: Path, monkeypatch: pytest.MonkeyPatch
):
    async with console(settings, vault, size=(120, 40)) as screen:
        await screen.type("owl ")
        search = screen.engine.notes.search

        async def timed(query, **options):
            return replace(await search(query, **options), seconds=0.01)

        monkeypatch.setattr(screen.engine.notes, "search", timed)
        await screen.press("down", "R")
        painted: list[object] = []
        monkeypatch.setattr(
            type(screen.app), "_display", lambda _app, _screen, update: painted.append(update)
        )
        for _ in range(5):
            screen.pane.status_read()
            screen.pane.do_refresh()
            await screen.settle()
        assert not [update for update in painted if update is not None]


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda text: text, "= same"),
        (lambda text: "A new first line.\n\n" + text, "→ moved to L3-L6"),
        (lambda text: text.replace("night", "dusk"), "≠ changed"),
        (lambda _text: None, "✗ gone"),
    ],
)
async def test_each_citation_is_checked_against_the_disk(settings: Settings, vault: Path, change, shown: str):
    async with console(settings, vault, size=(120, 40)) as screen:
        await screen.type("barn owl ")
        assert screen.references[0] == "birds/owl.md:L1-L4"
        note = vault / "birds/owl.md"
        text = change(note.read_text())
        note.unlink() if text is None else note.write_text(text)
        screen.pane._checked.clear()
        screen.pane._look()
        await screen.settle()
        assert any("birds/owl.md:L1-L4" in line and shown in line for line in screen.lines)
