"""The keys of the search pane: between input, list and preview, marks, copying, the editor, narrowing."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.notes.model import Mode
from tests.support import eventually
from tests.tui.search_console import NOTES, console, write

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


# Moving ------------------------------------------------------------------------------------------


async def test_down_enter_and_escape_leave_the_input_and_slash_comes_back(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("owl")
        for key in ("down", "enter", "escape"):
            await screen.press(key)
            assert screen.app.focused is screen.pane.list, key
            await screen.press("slash")
            assert screen.app.focused is screen.pane.input
        assert screen.pane.input.value == "owl"
        await screen.type("s")
        assert screen.pane.input.value == "owls"


async def test_2_goes_to_the_search_line_whatever_was_done_here_before(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("zzqqxx")
        for keys in (("escape", "2"), ("escape", "3", "2"), ("escape", "3", "shift+tab")):
            await screen.press(*keys)
            assert screen.app.focused is screen.pane.input, keys
        screen.pane.input.value = "owl"
        await screen.settle()
        for keys in (("down",), ("down", "v"), ("down", "j", "1"), ("down", "v", "8")):
            await screen.press(*keys, "2")
            assert screen.app.focused is screen.pane.input, keys
            assert screen.pane.list.display, keys
        await screen.type(" hunts")
        assert screen.pane.input.value == "owl hunts"
        assert "/ search line" in screen.text


async def test_enter_does_not_wait_for_the_pause(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.press(*"robin", "enter")
        assert screen.references[0].startswith("birds/robin.md")
        assert screen.app.focused is screen.pane.list


async def test_list_keys_move_and_up_from_the_first_goes_to_the_input(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("owl robin database migration ")
        total = len(screen.references)
        assert total >= 3
        await screen.press("down", "j", "j")
        assert screen.pane.list.cursor == 2
        await screen.press("G")
        assert screen.pane.list.cursor == total - 1
        await screen.press("j", "n")
        assert screen.pane.list.cursor == total - 1
        await screen.press("g")
        assert screen.pane.list.cursor == 0
        await screen.press("ctrl+d", "N")
        assert screen.pane.list.cursor < total
        await screen.press("g", "up")
        assert screen.app.focused is screen.pane.input


async def test_letters_and_digits_in_the_input_are_text(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("q1jy:?/*")
        assert screen.pane.input.value == "q1jy:?/*"
        assert screen.app.is_running
        await screen.press("escape", "escape", "backspace", "backspace")
        assert screen.app.is_running
        assert screen.app.active_pane is screen.pane


# History -----------------------------------------------------------------------------------------


async def test_up_and_down_walk_the_queries_of_this_and_earlier_sessions(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.press(*"robin", "enter")
    async with console(settings, vault) as screen:
        await screen.shows("Asked before:")
        assert "robin" in screen.text
        await screen.press(*"owl", "enter", "slash", "ctrl+u", *"dra")
        await screen.press("up")
        assert screen.pane.input.value == "owl"
        await screen.press("up")
        assert screen.pane.input.value == "robin"
        assert screen.references[0].startswith("birds/robin.md")
        await screen.press("up")
        assert "No older query" in screen.text
        await screen.press("down", "down")
        assert screen.pane.input.value == "dra"
        assert screen.app.focused is screen.pane.input


async def test_a_history_that_cannot_be_read_or_kept_is_said_and_nothing_breaks(
    settings: Settings, vault: Path
):
    (settings.paths.state / "search_history.jsonl").mkdir()
    async with console(settings, vault) as screen:
        await screen.press(*"owl", "enter")
        assert "The search history cannot be kept" in screen.text
        assert screen.references


# Marks and copying -------------------------------------------------------------------------------


async def test_y_copies_the_reference_under_the_cursor_and_names_the_route(
    settings: Settings, vault: Path, copied: list[str]
):
    async with console(settings, vault) as screen:
        await screen.type("barn owl ")
        await screen.press("down", "y")
        assert copied == ["birds/owl.md:L1-L4"]
        assert "copied by OSC 52: your terminal must allow it (birds/owl.md:L1-L4)" in screen.text


async def test_y_copies_all_marks_also_those_of_an_earlier_query(
    settings: Settings, vault: Path, copied: list[str]
):
    async with console(settings, vault) as screen:
        await screen.type("robin ")
        await screen.press("down", "space")
        await screen.press("slash", "ctrl+u")
        await screen.type("barn owl ")
        await screen.press("down", "space")
        assert "2 marks" in screen.text
        await screen.press("y")
        assert sorted(copied[0].splitlines()) == ["birds/owl.md:L1-L4", "birds/robin.md:L1-L3"]
        assert "copied by OSC 52: your terminal must allow it (2 citations)" in screen.text


async def test_with_several_folders_a_copied_citation_has_its_whole_path(
    settings: Settings, vault: Path, tmp_path: Path, copied: list[str]
):
    async with console(settings, vault) as screen:
        await screen.engine.notes.add_folder(write(tmp_path / "other", {"birds/owl.md": "# Other\n"}))
        await screen.until(lambda: screen.app.status.index.folders == 2)
        await screen.type("barn owl ")
        await screen.press("down", "y")
        assert copied == [f"{vault}/birds/owl.md:L1-L4"]


async def test_marks_are_undone_and_cleared_and_escape_stays_in_the_list(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("owl robin database migration ")
        await screen.press("down", "asterisk")
        assert len(screen.pane.marks) == len(screen.references)
        await screen.press("u")
        assert len(screen.pane.marks) == 0
        await screen.press("space")
        assert "●" in screen.text
        await screen.press("escape")
        assert len(screen.pane.marks) == 0
        assert screen.app.focused is screen.pane.list
        await screen.press("escape")
        assert screen.app.focused is screen.pane.list
        assert "Nothing to drop" in screen.text


async def test_what_needs_a_citation_says_so_where_there_is_none(
    settings: Settings, vault: Path, copied: list[str]
):
    async with console(settings, vault) as screen:
        await screen.type("zzzqqqxx ")
        for key in ("y", "e", "space", "v"):
            await screen.press("escape", key)
            assert "There is no citation here" in screen.text
            await screen.press("slash")
        assert copied == []


# The editor --------------------------------------------------------------------------------------


def editor(folder: Path, body: str) -> str:
    file = folder / "editor.py"
    file.write_text(f"#!{sys.executable}\nimport os, pathlib, sys\n{body}\n")
    file.chmod(0o755)
    return str(file)


async def test_e_opens_the_editor_the_engine_runs_on_and_the_citation_is_checked_on_return(
    settings: Settings, vault: Path, tmp_path: Path
):
    go, seen = tmp_path / "go", tmp_path / "seen"
    os.mkfifo(go)
    body = (
        f"open({str(go)!r}).read(); note = pathlib.Path(sys.argv[-1])\n"
        f"pathlib.Path({str(seen)!r}).write_text('\\n'.join(sys.argv[1:]))\n"
        "note.write_text('New first line.\\n\\n' + note.read_text())"
    )
    async with console(replace(settings, editor=editor(tmp_path, body)), vault, live=True) as screen:
        await screen.pilot.press(*"barn owl ")
        await eventually(lambda: "birds/owl.md:L1-L4" in screen.references)
        await screen.pilot.press("down", "e")
        descriptor = await asyncio.to_thread(os.open, go, os.O_WRONLY)  # the editor waits here
        write(vault, {"birds/wren.md": "# Wrens\n\nA wren was written while the editor was open.\n"})
        search = screen.engine.notes.search

        async def found() -> bool:
            result = await search("wren", prefix=False)
            return any(citation.path == "birds/wren.md" for citation in result.citations)

        await eventually(found)
        os.close(descriptor)
        await eventually(seen.exists)
        assert seen.read_text().splitlines() == [str(vault / "birds/owl.md")]
        # The index follows by itself: the citation is at its new lines, and the same as on the disk.
        await eventually(lambda: "birds/owl.md:L3-L6" in screen.references)
        await eventually(lambda: any("owl.md:L3-L6" in line and "= same" in line for line in screen.lines))


async def test_the_editor_opens_where_the_text_has_moved_to(settings: Settings, vault: Path, tmp_path: Path):
    seen = tmp_path / "seen"
    vim = tmp_path / "vim"
    vim.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {seen}\n")
    vim.chmod(0o755)
    async with console(replace(settings, editor=str(vim)), vault) as screen:
        await screen.type("barn owl ")
        note = vault / "birds/owl.md"
        note.write_text("\n" * 10 + note.read_text())
        await screen.press("down", "enter")
        await eventually(seen.exists)
        assert seen.read_text().splitlines() == ["+11", str(note)]
        await screen.shows("→ moved to L11-L14")


async def test_an_editor_that_fails_or_is_missing_is_one_flash(
    settings: Settings, vault: Path, tmp_path: Path
):
    async with console(replace(settings, editor=editor(tmp_path, "sys.exit(7)")), vault) as screen:
        await screen.type("barn owl ")
        await screen.press("down", "e")
        await screen.shows("ended with status 7")
        screen.app.settings = replace(settings, editor="no-such-editor-[/b]")
        await screen.press("e")
        await screen.shows("not installed, or not on the PATH: 'no-such-editor-[/b]'")
        (vault / "birds/owl.md").unlink()
        screen.app.settings = replace(settings, editor="true")
        await screen.press("e")
        await screen.shows("there is no file any more")


# Preview -----------------------------------------------------------------------------------------


async def test_beside_the_list_the_preview_follows_the_cursor(settings: Settings, vault: Path):
    async with console(settings, vault, size=(120, 40)) as screen:
        await screen.type("owl robin database migration ")
        assert "1 ┃ #" in screen.text
        await screen.press("down", "G")
        last = screen.current
        await screen.shows(f"{last.line_start} ┃ {last.text.splitlines()[0]}")


async def test_below_100_columns_the_preview_folds_away_until_it_is_asked_for(
    settings: Settings, vault: Path
):
    async with console(settings, vault) as screen:
        await screen.type("barn owl ")
        assert not screen.pane.preview.display
        await screen.press("down", "v")
        assert "1 ┃ # Owls" in screen.text
        assert "  = same" in screen.lines[screen.lines.index(next(x for x in screen.lines if "┃" in x)) - 1]
        assert not screen.pane.list.display
        await screen.press("j", "k", "G", "g", "ctrl+d")
        assert screen.pane.zoomed
        await screen.press("escape")
        assert not screen.pane.preview.display
        assert screen.app.focused is screen.pane.list
        await screen.pilot.resize_terminal(120, 40)
        await screen.settle()
        assert screen.pane.preview.display
        await screen.shows("1 ┃ # Owls")


async def test_a_long_preview_scrolls_by_its_own_keys(settings: Settings, tmp_path: Path):
    text = "# Long\n" + "".join(f"owl line {n}\n" for n in range(1, 60))
    async with console(settings, write(tmp_path / "v", {"long.md": text}), size=(120, 20)) as screen:
        await screen.type("owl ")
        await screen.press("down")
        before = screen.pane.preview.lines.scroll_offset.y
        await screen.press("J", "J")
        assert screen.pane.preview.lines.scroll_offset.y == before + 2
        await screen.press("K")
        assert screen.pane.preview.lines.scroll_offset.y == before + 1
        assert screen.pane.list.cursor == 0


# Narrowing ---------------------------------------------------------------------------------------


async def test_the_mode_cycles_and_the_explanation_shows_the_lists(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("barn owl ")
        await screen.press("down", "x")
        assert "keyword #1" in screen.text
        assert "fused" in screen.text
        await screen.press("m")
        assert screen.pane.question.mode is Mode.KEYWORD
        assert "· keyword" in screen.text
        assert "score " in screen.text
        await screen.press("m", "m", "x")
        assert screen.pane.question.mode is Mode.HYBRID
        assert "fused" not in screen.text


async def test_a_path_pattern_narrows_and_escape_drops_it(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("owl ")
        assert {reference.partition("/")[0] for reference in screen.references} == {"birds", "work"}
        await screen.press("down", "p", *"work/**", "enter")
        assert {reference.partition("/")[0] for reference in screen.references} == {"work"}
        assert "only work/**" in screen.text
        await screen.press("down", "escape")
        assert {reference.partition("/")[0] for reference in screen.references} == {"birds", "work"}
        await screen.press("p", *"birds/**", "escape")
        assert not screen.pane.question.glob
        assert not screen.pane.glob.display


async def test_the_folder_cycles_through_all_and_each(settings: Settings, vault: Path, tmp_path: Path):
    other = write(tmp_path / "other", {"x.md": "# Another owl\n\nAn owl of another folder.\n"})
    async with console(settings, vault) as screen:
        await screen.type("owl ")
        await screen.press("down", "f")
        assert "There is only one folder" in screen.text
        await screen.engine.notes.add_folder(other)
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        await screen.press("R")
        assert {citation.folder for citation in screen.pane.list.citations} == {vault, other}
        seen = []
        for _ in range(3):
            await screen.press("f")
            seen.append({citation.folder for citation in screen.pane.list.citations})
        assert sorted(map(len, seen)) == [1, 1, 2]
        assert seen[2] == {vault, other}


async def test_marks_and_history_are_written_nowhere_but_the_state_folder(settings: Settings, vault: Path):
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    async with console(settings, vault) as screen:
        await screen.press(*"owl", "enter", "space", "R")
    assert {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()} == before
    [kept] = settings.paths.state.glob("search*")
    assert [json.loads(line) for line in kept.read_text().splitlines()] == ["owl"]
