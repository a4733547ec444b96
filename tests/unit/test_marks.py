"""The marks of an answer: which there are, where they stand, and what they point to."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.notes import marks
from tests.hostile import PAYLOADS


def numbers(text: str) -> list[int]:
    return [number for _, _, found in marks.places(text) for number in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Owls hunt at night [1].", [1]),
        ("night[1]. [12]", [1, 12]),
        ("[1][3] [1, 2] [ 4,5 ] [6; 7]", [1, 3, 1, 2, 4, 5, 6, 7]),
        ("[1-3] [2–4] [9-7]", [1, 2, 3, 2, 3, 4, 9, 7]),
        ("夜【1】、【2、3】\uff3b4\uff3d", [1, 2, 3, 4]),
        ("【1†notes.md】 [^2]", [1, 2]),
        ("[1-9999]", [1, 9999]),
        ("[1](http://x) ![2](y) [[3]](z) [4] (5)", [4]),
        ("[link][1]", [1]),
        ("`a[1]` ``b ` [2]`` c [3]", [3]),
        ("```py\nx = y[1]\n```\n[2]", [2]),
        ("- ```\n  [1]\n  ```\n[2]", [2]),
        ("~~~\n[1]\n```\n[2]\n~~~\n[3]", [3]),
        ("[1]\n```\n[2] never closed", [1]),
        ("a ` [1]\n\nb ` [2]", [1, 2]),
        ("[] [ ] [x] [1a] [a1] [1.5] [12345] (1) {1}", []),
        ("[1", []),
        ("[1\n]", [1]),
    ],
)
def test_marks_are_found_in_prose_only(text: str, found: list[int]) -> None:
    assert numbers(text) == found


def test_each_is_resolved_or_points_to_nothing() -> None:
    text = "A [1]. B [2, 7]. C [0]."
    found = marks.resolved(text, ["a.md:L1-L2", "b.md:L3-L3"])
    assert [(text[mark.start : mark.end], mark.number, mark.reference) for mark in found] == [
        ("[1]", 1, "a.md:L1-L2"),
        ("[2, 7]", 2, "b.md:L3-L3"),
        ("[2, 7]", 7, None),
        ("[0]", 0, None),
    ]
    assert marks.unsupported(found, 2) == ("[7], [0] point to nothing: the passages are [1] to [2].",)


def test_what_is_unsupported_is_said_in_one_sentence() -> None:
    def said(text: str, given: int) -> tuple[str, ...]:
        return marks.unsupported(marks.resolved(text, ["a.md:L1-L1"] * given), given)

    assert said("No source.", 3) == ("The answer names no source.",)
    assert said("`[1]`", 3) == ("The answer names no source.",)
    assert said("Yes [1].", 1) == ()
    assert said("Yes [2] [2].", 1) == ("[2] points to nothing: the only passage is [1].",)
    assert said("Yes [10-19]", 3) == (
        "[10], [11], [12], [13], [14] and 5 more point to nothing: the passages are [1] to [3].",
    )


PARTS = st.sampled_from(
    [
        "[1]",
        "[2,3]",
        "【4】",
        "`",
        "``",
        "```\n",
        "~~~\n",
        "\n",
        "\n\n",
        " ",
        "](",
        "[",
        "]",
        "word",
        "é漢",
        *PAYLOADS.values(),
    ]
)


@given(st.lists(PARTS, max_size=30).map("".join))
def test_a_mark_stands_where_it_says_and_in_order(text: str) -> None:
    before = 0
    for start, end, found in marks.places(text):
        assert before <= start < end <= len(text)
        assert text[start] in "[\u3010\uff3b"
        assert text[end - 1] in "]\u3011\uff3d"
        assert found
        assert all(str(number) in text[start:end] or "-" in text[start:end] for number in found[:1])
        before = end


@pytest.mark.parametrize(
    "text",
    [
        "`" * 50_000,
        "` " * 50_000,
        "[" * 50_000,
        "[1," * 20_000,
        "```\n" * 20_000,
        "[1" + " " * 50_000,
        "- " * 30_000 + "```",
    ],
    ids=["ticks", "spans", "brackets", "lists", "fences", "blanks", "bullets"],
)
def test_no_text_takes_long(text: str) -> None:
    began = time.perf_counter()
    marks.places(text)
    assert time.perf_counter() - began < 5
