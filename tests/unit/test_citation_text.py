"""How a citation is laid out: safe, bounded, in cells, with the right words marked whatever they contain."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from engine.notes.model import Citation, Explanation, Freshness, FreshnessState
from engine.text.safe import visible
from tui.widgets import citation_text

HOSTILE = "\x1b]52;c;QQ==\x07 \x9b2J \u202e [/b] [x] \x00 日本語"


def citation(text: str = "an owl", matches: tuple[tuple[int, int], ...] = (), **other) -> Citation:
    fields = {
        "folder": Path("/n"),
        "path": "a.md",
        "line_start": 3,
        "line_end": 9,
        "distance": 0.25,
        "score": 1.5,
    }
    return Citation(text=text, matches=matches, **{**fields, **other})


def marked(content) -> list[str]:
    """The words that a content marks."""
    return [
        content.plain[span.start : span.end] for span in content.spans if span.style == citation_text.MATCH
    ]


def test_a_marked_word_stays_marked_behind_characters_that_grow():
    text = "\x1b\u202e owl \x9b and\nan owl"
    spans = [(m, m + 3) for m in (3, 16)]
    assert [text[a:b] for a, b in spans] == ["owl", "owl"]
    shown = citation_text.shown(text, spans)
    assert marked(shown) == ["owl", "owl"]
    assert shown.plain == visible(text)


def test_a_control_character_inside_a_marked_word_is_shown_and_marked():
    assert marked(citation_text.shown("x o\x1bwl", [(2, 6)])) == ["o␛wl"]


@given(
    st.text(st.characters(), max_size=60),
    st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=6),
)
def test_spans_of_any_kind_mark_what_they_stand_for(text: str, spans: list[tuple[int, int]]):
    shown = citation_text.shown(text, spans)
    assert shown.plain == visible(text).replace("\t", "    ")
    covered = sorted({i for a, b in spans for i in range(max(a, 0), min(b, len(text)))})
    assert "".join(marked(shown)) == "".join(visible(text[i]).replace("\t", "    ") for i in covered)


@given(st.text(max_size=400), st.integers(1, 90), st.integers(1, 4), st.integers(0, 400))
def test_a_passage_never_exceeds_its_room(text: str, width: int, height: int, at: int):
    lines = citation_text.passage(citation(text, ((at, at + 3),) if at < len(text) else ()), width, height)
    assert len(lines) <= height
    # A wide character in one cell cannot be helped; everywhere else the width holds.
    assert all(line.cell_length <= max(width, 2) for line in lines)
    assert not any("\n" in line.plain or "\t" in line.plain for line in lines)


@pytest.mark.parametrize("before", [0, 40, 400, 200_000])
def test_the_first_match_is_in_sight_wherever_it_stands(before: int):
    text = "word " * (before // 5) + "the OWL flies"
    at = text.index("OWL")
    lines = citation_text.passage(citation(text, ((at, at + 3),)), 60, 2)
    assert [word for line in lines for word in marked(line)] == ["OWL"]
    assert (before > 100) == lines[0].plain.startswith("… ")


def test_what_was_cut_off_is_said():
    assert citation_text.passage(citation("word " * 100), 20, 2)[-1].plain.endswith("…")
    assert not citation_text.passage(citation("word"), 20, 2)[-1].plain.endswith("…")


def test_a_line_of_300_kilobytes_costs_no_more_than_what_is_shown():
    text = "x owl " * 50_000
    matches = tuple((n * 6 + 2, n * 6 + 5) for n in range(50_000))
    citation_text.passage(citation("warm up"), 77, 2)
    start = time.perf_counter()
    citation_text.passage(citation(text, matches), 77, 2)
    # Far above a millisecond even on a loaded machine would mean that all of it was laid out.
    assert time.perf_counter() - start < 0.25


@pytest.mark.parametrize("width", [10, 20, 40, 77, 117])
@pytest.mark.parametrize("path", ["a.md", "deep/" * 40 + "日本語のノート.md", f"evil{HOSTILE}.md"])
def test_the_header_fits_and_keeps_the_lines_and_the_end_of_the_path(width: int, path: str):
    header = citation_text.header(
        citation(path=path, heading=(HOSTILE,)), Freshness(FreshnessState.SAME), width, folder=HOSTILE
    )
    assert header.cell_length == width
    assert header.plain == visible(header.plain, keep_newlines=False, keep_tabs=False)
    if width >= 40:
        assert ".md:L3-L9" in header.plain
        assert header.plain.endswith("= same  dist 0.25")


def test_each_freshness_has_a_sign_and_a_word():
    moved = Freshness(FreshnessState.MOVED, 5, 11)
    texts = [
        citation_text.freshness_text(Freshness(state)).plain for state in FreshnessState if state != "moved"
    ]
    assert [*texts, citation_text.freshness_text(moved).plain] == [
        "= same",
        "≠ changed",
        "✗ gone",
        "→ moved to L5-L11",
    ]
    assert citation_text.freshness_text(None).plain == "·"


def test_without_a_distance_the_score_is_shown():
    assert citation_text.measure(citation(distance=None)) == "score 1.50"
    assert citation_text.measure(citation()) == "dist 0.25"


def test_the_explanation_names_each_list():
    text = citation_text.explained(Explanation(1, 12.3456, None, None, 0.5), 80).plain
    assert text == "keyword #1 12.346 · not by vector · fused 0.500"
    assert cell_len(citation_text.explained(Explanation(1, 12.3456, 2, 0.1, 0.5), 20).plain) <= 20
