"""What may be typed into the filter of Lessons, and how lessons are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.model import LessonFilter, LessonState
from tui.panes.lessons_filter import AGE_WANTED, parse, references

LIVING = LessonState.LIVING


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", LessonFilter()),
        ("pnpm  tests", LessonFilter(text="pnpm tests")),
        ("core:work", LessonFilter(core="work")),
        ("user:alice pnpm", LessonFilter(text="pnpm", user="alice")),
        ('user:"Alice B" core:work', LessonFilter(user="Alice B", core="work")),
        ('user:""', LessonFilter(user="")),
        ("age:>30d", LessonFilter(older_than_days=30)),
        ("age:30", LessonFilter(older_than_days=30)),
        ("age:>2w", LessonFilter(older_than_days=14)),
        ("age:>12h", LessonFilter(older_than_days=0.5)),
        ("unused new", LessonFilter(unused=True, new=True)),
        ("expired", LessonFilter(state=LessonState.EXPIRED)),
        ("deleted", LessonFilter(state=LessonState.DELETED)),
        ("all", LessonFilter(state=None)),
        ('"new" "unused tests"', LessonFilter(text="new unused tests")),
        ("L12", LessonFilter(id=12)),
        ("l12 pnpm", LessonFilter(id=12, text="pnpm")),
        ("L12a", LessonFilter(text="L12a")),
        ("newer", LessonFilter(text="newer")),
        ("http://x", LessonFilter(text="http://x")),
    ],
)
def test_a_filter_asks_for_words_and_for_what_its_signs_name(text: str, where: LessonFilter):
    question = parse(text)
    assert question.where == where
    assert not question.trouble


@pytest.mark.parametrize("text", ["core:", "user:", "age:", 'core: "'])
def test_what_is_still_being_typed_asks_for_nothing_yet(text: str):
    assert parse(text).where == LessonFilter()


@pytest.mark.parametrize("text", ["age:>", "age:<7d", "age:old", "age:>3x"])
def test_an_age_that_is_none_is_told(text: str):
    assert parse(text).trouble == AGE_WANTED
    assert parse(text).where == LessonFilter()


def test_the_state_is_that_of_the_view_until_the_filter_names_one():
    assert parse("x", LessonState.DELETED).where.state is LessonState.DELETED
    assert parse("expired", LessonState.DELETED).where.state is LessonState.EXPIRED


@given(st.text())
def test_no_text_is_too_much(text: str):
    parse(text)
    references(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("L12", ([12], "")),
        ("12, l13 L12", ([12, 13], "")),
        ("L12 names a customer", ([12], "names a customer")),
        ("L12 2 reasons", ([12, 2], "reasons")),
        ("because", ([], "because")),
        ("L12x", ([], "L12x")),
        (" ", ([], "")),
    ],
)
def test_lessons_are_named_by_their_references(text: str, named: tuple[list[int], str]):
    assert references(text) == named
