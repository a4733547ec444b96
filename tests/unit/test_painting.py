"""The last line of defence of the screen: rows that hold what a terminal obeys are painted as text of the same width."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tests.hostile import PAYLOADS, STEERS
from tui import painting

CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
BOLD = Style(bold=True)


def painted(*segments: Segment) -> str:
    """What would be written to the terminal."""
    return Strip(segments).render(CONSOLE)


def plain(output: str) -> str:
    """The same without the codes of the one style that is used here."""
    return output.replace("\x1b[1m", "").replace("\x1b[0m", "")


@pytest.mark.parametrize("style", [None, BOLD], ids=["without a style", "bold"])
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=list(PAYLOADS))
def test_no_row_steers_the_terminal_and_every_part_keeps_its_width(payload: str, style: Style | None) -> None:
    before, text, after = Segment("before ", style), Segment(payload, style), Segment(" after", style)
    output = painted(before, text, after)
    assert not STEERS.search(plain(output))
    assert cell_len(plain(output)) == sum(cell_len(part.text) for part in (before, text, after))
    assert plain(output).endswith(" after")


def test_what_has_a_picture_is_shown_by_it_and_the_rest_as_one_sign() -> None:
    assert painted(Segment("a\x1b[2J\x07\x7f\t\n_____", None)) == "a␛[2J␇␡␉␊"
    assert painted(Segment("\x9b2J\u202e\u2028\ud800___", None)) == "�2J���"


def test_a_part_that_is_not_wide_enough_for_the_signs_is_cut() -> None:
    assert painted(Segment("\x1b\x1b\x1b", None), Segment("x", None)) == "x"


def test_no_row_carries_a_link_also_when_its_text_is_harmless() -> None:
    linked = Style(bold=True, link="http://evil.example/\x1b[2J")
    assert painted(Segment("here", linked)) == "\x1b[1mhere\x1b[0m"


def test_a_part_that_only_steers_is_text_too() -> None:
    """Textual writes such parts as they are."""
    assert "\x1b" not in painted(Segment("\x1b[2J", None, [(1, 2)]))


def test_a_harmless_row_is_painted_as_ever() -> None:
    parts = [Segment("日本 👩\u200d👧 שלום\u200f", BOLD), Segment(" plain ", None), Segment("", None)]
    assert painted(*parts) == painting._render(Strip(parts), CONSOLE)


def test_a_row_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Strip] = []
    monkeypatch.setattr(painting, "_is_unsafe", looked.append)
    strip = Strip([Segment("text", BOLD)])
    assert strip.render(CONSOLE) == strip.render(CONSOLE)
    assert len(looked) == 1


def test_rows_that_are_cut_and_joined_are_guarded_as_well() -> None:
    evil = Strip([Segment("one \x1b[2J two", BOLD)])
    evil.render(CONSOLE)
    for strip in (Strip.join([evil, evil]), evil.crop(2, 9), evil.apply_offsets(0, 0), evil.simplify()):
        assert not re.search(r"\x1b\[2J", strip.render(CONSOLE))
