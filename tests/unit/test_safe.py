"""Text that is shown cannot steer the terminal."""

# ruff: noqa: RUF001 - letters that look alike are what is tested

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.safe import visible

STEERING = [
    *(chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)] if chr(code) not in "\n\t"),
    *(chr(code) for code in [*range(0x2028, 0x202F), *range(0x2066, 0x206A)]),
    *("\ud800", "\udfff", "\udc9b"),
]
hostile = st.one_of(st.text(max_size=80), st.text([*STEERING, "a", "\n", "\t", "é", "🐘"], max_size=40))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇"),
        ("\x1b[2J", "␛[2J"),
        ("\x9b2J", "⟦U+009B⟧2J"),
        ("a\u202eb", "a⟦U+202E⟧b"),
        ("\u2066x\u2069", "⟦U+2066⟧x⟦U+2069⟧"),
        ("\x00\x7f\r\x0b\x0c", "␀␡␍␋␌"),
        ("a\u2028b", "a⟦U+2028⟧b"),
        ("\udcff", "\\xff"),
        ("one\n\ttwo", "one\n\ttwo"),
        ("[/notes/a.md:L1-L9] [b", "[/notes/a.md:L1-L9] [b"),
        ("שלום\u200f 👩\u200d👧 می\u200cخواهم", "שלום\u200f 👩\u200d👧 می\u200cخواهم"),
    ],
)
def test_what_is_shown(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize("character", STEERING)
def test_nothing_that_steers_gets_through(character):
    assert character not in visible(f"a{character}b")


@given(hostile, st.booleans(), st.booleans())
def test_the_result_is_printable_and_stays_as_it_is(text, keep_newlines, keep_tabs):
    shown = visible(text, keep_newlines=keep_newlines, keep_tabs=keep_tabs)
    shown.encode()  # a terminal can be given it
    kept = "\n" * keep_newlines + "\t" * keep_tabs
    assert all(unicodedata.category(each) not in {"Cc", "Cs", "Zl", "Zp"} or each in kept for each in shown)
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", shown)
    assert visible(shown, keep_newlines=keep_newlines, keep_tabs=keep_tabs) == shown


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cf"])))
def test_harmless_text_is_returned_as_it_is(text):
    assert visible(text) is text


def test_newlines_and_tabs_on_request():
    assert visible("a\nb\tc", keep_newlines=False) == "a␊b\tc"
    assert visible("a\nb\tc", keep_tabs=False) == "a\nb␉c"
    assert visible("a\nb\tc", keep_newlines=False, keep_tabs=False) == "a␊b␉c"
