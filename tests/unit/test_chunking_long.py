"""What is too long for one chunk is cut where a reader would cut it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.notes.chunking import MAX, TARGET, chunk
from engine.notes.splitting import split_line

SENTENCE = "This is the sentence with number {} and it ends here."


def test_a_file_of_one_long_line_is_pieces_of_that_line():
    chunks = chunk(" ".join(SENTENCE.format(n) for n in range(6000)))
    assert {(each.line_start, each.line_end) for each in chunks} == {(1, 1)}
    assert all(each.text.startswith("This is") and each.text.endswith("here.") for each in chunks)
    assert all(TARGET * 0.7 <= len(each.text) <= MAX for each in chunks)


def test_headings_stay_with_the_first_piece_of_an_over_long_line():
    line = " ".join(SENTENCE.format(n) for n in range(60))
    chunks = chunk(f"# A\n\n## B\n\n{line}\n\nafter " + "z" * 200)
    assert [(each.line_start, each.line_end) for each in chunks][:2] == [(1, 5), (5, 5)]
    assert chunks[0].text.startswith("# A\n\n## B\n\nThis is the sentence with number 0")
    assert chunks[0].text.endswith("here.")
    assert {each.heading for each in chunks} == {("A", "B")}
    assert all(len(each.text) <= MAX for each in chunks)


def test_a_long_paragraph_of_lines_is_cut_after_a_sentence():
    lines = [
        f"line {n} goes on and on without" if n % 4 else f"line {n} ends its sentence here."
        for n in range(120)
    ]
    chunks = chunk("\n".join(lines))
    assert len(chunks) > 3
    assert all(each.text.endswith("here.") for each in chunks[:-1])
    assert "\n".join(each.text for each in chunks) == "\n".join(lines)


def test_an_over_long_list_is_cut_between_its_items():
    items = [f"- item {n} of the list\n  with a second line\n\n  and a paragraph" for n in range(60)]
    chunks = chunk("\n".join(items))
    assert len(chunks) > 2
    assert all(each.text.startswith("- item") for each in chunks)


def test_an_over_long_table_is_cut_between_rows():
    rows = "\n".join(f"| {n} | a value of some length |" for n in range(100))
    chunks = chunk(f"| a | b |\n|---|---|\n{rows}")
    assert len(chunks) > 2
    assert all(
        line.startswith("|") and line.endswith("|") for each in chunks for line in each.text.split("\n")
    )


def test_over_long_code_is_cut_at_its_blank_lines():
    function = "\n".join(["def f():", *(f"    value_{n} = compute_something(n={n})" for n in range(8))])
    chunks = chunk("```python\n" + "\n\n".join([function] * 12) + "\n```")
    assert len(chunks) > 2
    assert all(each.text.startswith("def f") for each in chunks[1:])


def test_no_crumb_is_left_over():
    chunks = chunk("\n".join(f"{n:03} " + "x" * 46 for n in range(23)))
    assert min(len(each.text) for each in chunks) > TARGET / 2


def test_a_heading_of_many_lines_never_stands_alone_before_long_text():
    chunks = chunk("# " + "h" * 400 + "\n\n" + "\n".join("y" * 300 for _ in range(9)))
    assert all(not each.text.endswith("h") and len(each.text) <= MAX for each in chunks)


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("数据库很好。" * 500, "。"),
        ("「引用です。」" * 400, "」"),
        ("यह एक वाक्य है। " * 200, "।"),
        ("هل هذا سؤال؟ " * 300, "؟"),
        ("no sentence but a clause, " * 200, ","),
        ("He said (so.) " * 200, ".)"),
    ],
)
def test_boundaries_of_sentences_in_other_scripts(line, ends):
    assert all(each.text.endswith(ends) for each in chunk(line))


def test_a_number_is_not_the_end_of_a_sentence():
    assert not any(each.text.endswith("3.") for each in chunk("pi is 3.14159 or so " * 300))


@pytest.mark.parametrize("unit", ["e\u0301", "👩\u200d👩\u200d👧", "👍\U0001f3fd", "ก็่", "क्षि"])
def test_a_character_is_not_torn_from_its_marks(unit):
    for piece in split_line(unit * 1500, target=TARGET, limit=MAX)[1:]:
        assert unicodedata.category(piece[0]) not in {"Mn", "Mc", "Cf"}
        assert not "\U0001f3fb" <= piece[0] <= "\U0001f3ff"


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab .,。\u0301\u200d🐘\t", max_size=400), st.integers(8, 40), st.integers(0, 40))
def test_pieces_make_up_the_line(line, target, taken):
    limit = target + 10
    pieces = split_line(line, target=target, limit=limit, taken=taken)
    assert "".join("".join(pieces).split()) == "".join(line.split())
    assert all(len(piece) <= limit for piece in pieces)
