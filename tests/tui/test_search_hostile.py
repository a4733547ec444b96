"""Hostile queries, names and passages in the search pane: harmless on the screen and in the bytes of a terminal."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from textual import events

from tests.tui.search_console import console, write

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "owl \x1b]52;c;QUJD\x07 \x1b[2J \x9b31m \u202eevil\u202c [/] [/b] [x] [bold]y[/bold] [@click=app.bell]z[/] 日本語 👩‍👩‍👧"

SIZES = ((80, 24), (120, 40), (20, 8))


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(
        tmp_path / "vault",
        {
            "evil\x1b[2J[b]\u202e.md": f"# {HOSTILE}\n\n{HOSTILE}\n",
            "wide/" + "長い名前" * 15 + ".md": "# 幅\n\nowl " + "漢字" * 200 + "\n",
            "huge.md": "start " + "x owl " * 50_000 + "\n",
            "marks.md": "owl " + "o\u0301\u200b\u2060\ufe0f" * 300 + "\n",
        },
    )


async def test_hostile_notes_are_shown_as_symbols_and_stay_in_their_columns(settings: Settings, vault: Path):
    async with console(settings, vault, size=SIZES[0]) as screen:
        await screen.type("owl ")
        assert len(screen.references) >= 4
        for size in SIZES:
            await screen.pilot.resize_terminal(*size)
            await screen.settle()
            await screen.press("down", "g")
            for _ in range(len(screen.references)):
                await screen.press("x", "v", "G", "v", "space", "j")
                assert not OBEYED.search("".join(screen.lines)), size
                widths = {strip.cell_length for strip in screen.app.screen._compositor.render_strips()}
                assert widths == {size[0]}
            if size[0] >= 80:
                assert "␛" in screen.text, size


QUERIES = (
    "x" * 10_000,
    "owl " * 2_500,
    HOSTILE,
    "[/",
    "[/notes/a.md:L1-L9]",
    '"',
    '"owl',
    '" "',
    "\\",
    "%s %(x)s {0} $1 ' ; -- /*",
    "\u202e" * 50,
    "-owl +owl OR AND NOT () : * ~ ^",
    "e\u0301" * 2_000,
    "?" * 500,
)
"""What is pasted into the search line, one after the other."""


async def test_a_hostile_query_is_answered_or_refused_in_words(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        for query in QUERIES:
            asked = ascii(query[:12])
            began = time.monotonic()
            screen.app.post_message(events.Paste(query))
            await screen.settle()
            assert time.monotonic() - began < 10, asked
            assert screen.pane.input.value, asked
            assert not OBEYED.search(screen.pane.input.value), asked
            assert not OBEYED.search("".join(screen.lines)), asked
            await screen.press("enter", "slash", "up", "down", "slash", "ctrl+u")
            await screen.type("owl ")
            assert screen.references, f"the pane must still answer after {asked}"
            await screen.press("ctrl+u")
            assert not screen.pane.input.value, asked


async def test_a_hostile_pattern_or_mode_is_refused_in_words(settings: Settings, vault: Path):
    async with console(settings, vault) as screen:
        await screen.type("owl ")
        await screen.press("down", "p")
        screen.app.post_message(events.Paste("[/\x1b[2J**[!" + "(" * 500))
        await screen.settle()
        await screen.press("enter")
        assert not OBEYED.search("".join(screen.lines))
        await screen.press("p", "escape")
        assert screen.references
