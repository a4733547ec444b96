"""On a real terminal: no byte of a file's text steers it, an idle screen is silent, NO_COLOR is kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.support import eventually
from tests.tui.desk import NOTES, write
from tests.tui.lessons_desk import clustered, learnt, said
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database import Database

STEERING = "\x1b]52;c;T1dO\x07\x1b[2J\x9b2J\x9d0;OWN\x9c\x1b]0;OWN\x07\x08\x7f\u202egnp.exe\u2066"
MARKUP = "[/ [b [x] [/notes/a.md:L1-L9] [@click=app.quit]x[/]"


TOUR = (
    ("3", "✗ failed 1"),
    ("s", "[○ pending"),
    ("s", "[◐ working"),
    ("s", "[✗ failed"),
    ("i", "attempts"),
    ("\x1b", "Tries"),
    ("4", "compared"),
    ("5", "lessons 1"),
    ("n", "[waiting"),
    ("t", "[tombstones"),
    ("8", "Log]"),
    ("v", "[searches and asks]"),
    ("v", "[tokens]"),
    ("v", "[log]"),
    ("F", "Folders of notes"),
    ("\x1b", "info "),
    ("2", "Type to search"),
    ("owl\r", "▸"),
    ("1", "Inbox]"),
    ("3", "Jobs]"),
    ("/owl", "with “owl”"),
    ("\x1b", "jobs "),
)
"""Keys, each with what is seen once it was answered."""


@pytest.fixture
def surroundings(environment: dict[str, str], database_url: str) -> dict[str, str]:
    return {**environment, "DATABASE_URL": database_url}


def hostile_vault(folder: Path) -> Path:
    """Notes that are hostile by their names and their text; some cannot be indexed."""
    name = STEERING.replace("/", "") + MARKUP.replace("/", "|")
    return write(
        folder,
        {
            f"{name}.md": f"# {STEERING}\n\nowl {STEERING} {MARKUP} end\n",
            f"bad {name}.md": b"\xff\xfeo\x00w\x00l\x00",
            "日本語の長い名前👩‍👩‍👧‍👦️.md": "owl\n",
        },
    )


async def test_hostile_text_reaches_the_terminal_only_as_symbols(
    surroundings: dict[str, str], database: Database, tmp_path: Path
):
    hostile = f"Beware of {STEERING} {MARKUP} in what is learned."
    await learnt(database, hostile, packets=await said(database, hostile, response=hostile))
    await clustered(database, hostile, error=hostile)
    with Terminal(
        surroundings, str(hostile_vault(tmp_path / f"vault {MARKUP[:3]}x")), cwd=tmp_path
    ) as screen:
        screen.until("2 notes")  # the third is no UTF-8
        for keys, then in TOUR:
            screen.press(keys, then)
        output = screen.output
    text = output.decode("utf-8", "replace")
    assert "OWN" in text, "the hostile names were never shown: the test shows nothing"
    assert not re.search(r"\x1b\](52|0)", text)
    assert not re.search("[\x80-\x9f\u202a-\u202e\u2066-\u2069]", text)
    # Textual itself asks for the shape of the pointer; nothing else may ring or erase.
    assert "\x07" not in re.sub(r"\x1b\]22;[a-z-]*\x07", "", text)
    assert "\x1b[2J" not in text
    assert "\x08" not in text


async def test_an_idle_screen_sends_nothing(surroundings: dict[str, str], tmp_path: Path):
    with Terminal(surroundings, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        for keys, then in (
            ("", ""),
            ("3", "Jobs]"),
            ("4", "compared"),
            ("5", "No lessons yet"),
            ("8", "Log]"),
            ("2", "Type to search"),
            ("owl", "citation"),  # its trace is written meanwhile, and told
            ("\x1b", ""),
            ("8", "[log]"),
            ("s", "owl"),
            ("t", "[tokens]"),
            (":", "Commands"),
            ("\x1b", ""),
            ("?", "Everywhere"),
        ):
            screen.press(keys, then)
            assert await eventually(lambda: screen.silent(2), 20), f"after {keys!r}"


async def test_no_color_gives_no_colour_codes_and_the_cursor_is_seen(
    surroundings: dict[str, str], tmp_path: Path
):
    with Terminal(
        {**surroundings, "NO_COLOR": "1"}, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path
    ) as screen:
        screen.until("vectors ✓")
        for keys, then in (
            ("3", "Jobs]"),
            ("8", "Log]"),
            ("?", "Everywhere"),
            ("\x1b", "info "),
            (":", "Commands"),
            ("\x1b", "info "),
            ("2", "Type to search"),
        ):
            screen.press(keys, then)
        codes = set(re.findall(rb"\x1b\[([0-9;]*)m", screen.output))
    parts = {int(part) for code in codes for part in code.split(b";") if part}
    assert parts <= {0, 1, 2, 3, 4, 7, 9}
    assert 7 in parts


async def test_quitting_leaves_the_terminal_as_it_was_and_no_complaint(
    surroundings: dict[str, str], tmp_path: Path
):
    with Terminal(surroundings, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("vectors ✓")
        screen.press("q")
        assert await eventually(screen.ended) == (0,)
        assert screen.output.rstrip().endswith(b"l")
        assert b"\x1b[?1049l" in screen.output
        after = screen.output.rpartition(b"\x1b[?1049l")[2]
        assert not re.search(rb"[A-Za-z]{4}", re.sub(rb"\x1b\[[?<>=]*[0-9;]*[a-zA-Z]", b"", after)), after


async def test_an_escape_within_a_paste_presses_no_key(surroundings: dict[str, str], tmp_path: Path):
    with Terminal(surroundings, str(write(tmp_path / "vault", NOTES)), cwd=tmp_path) as screen:
        screen.until("queue 0")
        screen.press("3")
        screen.until("Jobs]")
        screen.press("\x1b[200~zz\x1b[31m q\x1b[201~")
        screen.press("8")
        screen.until("Log]")
