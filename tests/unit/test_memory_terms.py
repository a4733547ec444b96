"""Turns are found by stems; a question is asked by what tells something in it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.memory.terms import question_terms, stems, turn_terms


def test_another_form_of_a_word_is_the_same_term() -> None:
    assert turn_terms("She painted; he is painting paintings.") == [
        "she",
        "paint",
        "he",
        "is",
        "paint",
        "paint",
    ]


@pytest.mark.parametrize("term", ["größe", "xk-4711", "日本", "2024", "naïve", ""])
def test_what_is_no_plain_latin_word_stays_as_it_is(term: str) -> None:
    assert stems([term]) == [term]


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("When did Caroline go to the LGBTQ support group?", ("carolin", "go", "lgbtq", "support", "group")),
        ("What is the name, the names?", ("name",)),
        ("Who am I?", ("who", "am", "i")),
        ("", ()),
    ],
)
def test_words_that_only_ask_are_left_out_unless_there_are_no_others(
    question: str, terms: tuple[str, ...]
) -> None:
    assert question_terms(question) == terms


@given(st.text())
def test_a_question_asks_for_what_a_turn_of_the_same_words_has(text: str) -> None:
    terms = question_terms(text)
    assert len(set(terms)) == len(terms)
    assert set(terms) <= set(turn_terms(text))


def test_stems_are_made_in_threads_at_once() -> None:
    words = ["painting", "relational", "happily", "conditional", "running"] * 400
    expected = stems(words)
    with ThreadPoolExecutor(4) as threads:
        assert all(found == expected for found in threads.map(stems, [words] * 16))
