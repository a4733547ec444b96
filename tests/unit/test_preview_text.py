"""The preview's rows: numbered, bounded, and marked only where the cited text still stands."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.notes.model import Citation, Freshness, FreshnessState, Preview
from engine.text.safe import visible
from tui.widgets.citation_text import MATCH
from tui.widgets.preview_text import AROUND, CITED, FEW, MOST_AROUND, MOST_CHARACTERS, MOST_LINES, rows

SAME = Freshness(FreshnessState.SAME, 3, 4)


def citation(text: str, matches: tuple[tuple[int, int], ...] = ()) -> Citation:
    return Citation(Path("/n"), "a.md", 3, 4, text, None, 1.0, matches=matches)


def marked(row) -> list[str]:
    return [row.plain[span.start : span.end] for span in row.spans if span.style == MATCH]


def test_lines_are_numbered_and_cited_ones_are_told_by_their_bar():
    preview = Preview(2, ("before", "one owl", "two owls", "after"), (3, 4), SAME)
    laid = rows(preview, citation("one owl\ntwo owls", ((4, 7), (12, 15))), 40)
    assert [row.plain for row in laid.rows] == [
        f"2 {AROUND} before",
        f"3 {CITED} one owl",
        f"4 {CITED} two owls",
        f"5 {AROUND} after",
    ]
    assert [marked(row) for row in laid.rows] == [[], ["owl"], ["owl"], []]
    assert laid.first == 1


def test_a_long_line_is_wrapped_under_its_number():
    laid = rows(Preview(99, ("word " * 10,), (99, 99), SAME), citation("word " * 10), 26)
    assert [row.plain[:6] for row in laid.rows[:2]] == [f" 99 {CITED} "[:6], f"    {CITED} "[:6]]


def test_a_changed_text_is_shown_without_marks():
    preview = Preview(3, ("something else", "entirely"), (3, 4), Freshness(FreshnessState.CHANGED))
    assert not any(marked(row) for row in rows(preview, citation("one owl\ntwo", ((4, 7),)), 40).rows)


def test_a_moved_text_is_marked_where_it_stands_now():
    preview = Preview(10, ("new", "one owl"), (11, 11), Freshness(FreshnessState.MOVED, 11, 11))
    assert [marked(row) for row in rows(preview, citation("one owl", ((4, 7),)), 40).rows] == [[], ["owl"]]


@pytest.mark.parametrize(
    ("first", "most"), [(3, MOST_CHARACTERS), (4, MOST_AROUND)], ids=["a cited line", "a line around"]
)
def test_a_few_characters_more_are_shown_and_not_counted(first: int, most: int):
    def text(length: int) -> str:
        laid = rows(Preview(3, ("z" * length,), (first, first), SAME), citation("z" * length), 60)
        return "".join(row.plain for row in laid.rows)

    assert text(most + FEW).count("z") == most + FEW
    assert "more" not in text(most + FEW)
    assert f"{FEW + 1} char" in text(most + FEW + 1)


def test_marks_survive_an_over_long_line_and_its_neighbourhood_is_shown():
    part = "the OWL flies"
    line = "x" * 150_000 + part + "y" * 150_000
    start = time.perf_counter()
    laid = rows(Preview(3, (line,), (3, 3), SAME), citation(part, ((4, 7),)), 60)
    assert time.perf_counter() - start < 0.5
    assert [word for row in laid.rows for word in marked(row)] == ["OWL"]
    text = "".join(row.plain for row in laid.rows)
    assert "characters before" in text
    assert "characters more" in text
    assert len(text) < 2 * MOST_CHARACTERS


def test_more_lines_than_are_bearable_are_counted_instead_of_shown():
    preview = Preview(1, tuple(f"line {n}" for n in range(10_000)), (1, 10_000), SAME)
    laid = rows(preview, citation("x"), 40)
    assert len(laid.rows) == MOST_LINES + 1
    assert "9,800 more lines" in laid.rows[-1].plain


@given(
    st.lists(st.text(st.characters(exclude_characters="\n"), max_size=80), min_size=1, max_size=5),
    st.integers(1, 80),
)
def test_no_row_is_wider_than_its_room_nor_steers_a_terminal(lines: list[str], width: int):
    laid = rows(Preview(1, tuple(lines), (1, len(lines)), SAME), citation("\n".join(lines)), width)
    for row in laid.rows:
        assert row.plain == visible(row.plain, keep_newlines=False, keep_tabs=False)
        assert row.cell_length <= max(width, 6)


@pytest.mark.parametrize("span", [(0, 0), (50, 60), (3, 2)])
def test_a_span_outside_the_lines_is_harmless(span: tuple[int, int]):
    assert rows(Preview(3, ("a", "b"), span, SAME), citation("a"), 40).first == 0
