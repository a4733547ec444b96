"""Labelled questions are read strictly: what is wrong is named with its file and row, and nothing is guessed."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import DatasetError
from engine.notes.labelled import MOST_BYTES, Expect, Lines, Question, absent, parse, read
from engine.notes.model import MOST_CITATIONS

KNOWMAN = Path(__file__).parents[2].parent / "shared" / "data" / "knowman" / "dataset.json"
OWLS: dict[str, Any] = {
    "id": "owls",
    "question": "when do owls hunt",
    "expect": "citation",
    "expect_path_contains": "owls.md",
}
NOTHING = {"id": "nothing", "question": "who won", "expect": "negative", "expect_path_contains": None}


def parsed(*rows: object) -> tuple[Question, ...]:
    return parse(json.dumps(rows).encode(), "asked.json")


def refused(*rows: object) -> str:
    with pytest.raises(DatasetError) as caught:
        parsed(*rows)
    return str(caught.value)


def test_the_fields_of_knowman_and_the_two_of_ours_are_read() -> None:
    lined = {"id": "l", "question": "q", "expect": "citation", "expect_lines": "a/b: c.md:L3-L9", "k": 7}
    assert parsed(OWLS, NOTHING, lined) == (
        Question("owls", "when do owls hunt", Expect.CITATION, "owls.md"),
        Question("nothing", "who won", Expect.NEGATIVE),
        Question("l", "q", Expect.CITATION, "", Lines("a/b: c.md", 3, 9), 7),
    )


def test_knowmans_own_file_is_read_unchanged() -> None:
    if not KNOWMAN.is_file():
        pytest.skip("the shared data has no knowman/dataset.json here")
    questions = read(KNOWMAN)
    assert len(questions) == 25
    assert sum(not each.place_wanted for each in questions) == 4
    assert all(each.k is None and each.lines is None for each in questions)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": None}, "row 2: it has no id."),
        ({"id": "  "}, "row 2: id is '  ', which is not a text."),
        ({"id": 7}, "row 2: id is 7, which is not a text."),
        ({"question": None}, "row 2 ('owls'): it has no question."),
        ({"question": ["when"]}, "question is ['when'], which is not a text."),
        ({"question": "\ud800"}, "question holds half of a surrogate pair."),
        ({"expect": None}, "it has no expect. Expect 'citation' or 'negative'."),
        ({"expect": "citaton"}, "expect is 'citaton'. Expect 'citation' or 'negative'."),
        ({"expect": ["citation"]}, "expect is ['citation']."),
        ({"expect": "negative"}, "it expects nothing, and names a place all the same."),
        ({"expect_path_contains": None}, "it does not say where the answer stands."),
        ({"expect_path_contains": ""}, "expect_path_contains is '', which is not a text."),
        ({"expect_path_contains": {"a": 1}}, "expect_path_contains is an object, which is not a text."),
        ({"expect_lines": "owls.md"}, "expect_lines is 'owls.md'. Write it as 'notes/owls.md:L3-L9'."),
        ({"expect_lines": "owls.md:L9-L3"}, "expect_lines is 'owls.md:L9-L3'."),
        ({"expect_lines": "owls.md:L0-L3"}, "expect_lines is 'owls.md:L0-L3'."),
        ({"expect_lines": "owls.md:L٣-L٤"}, "expect_lines is 'owls.md:L٣-L٤'."),
        ({"expect_lines": 3}, "expect_lines is 3."),
        ({"k": 0}, f"k is 0. Give a whole number from 1 to {MOST_CITATIONS}."),
        ({"k": MOST_CITATIONS + 1}, f"k is {MOST_CITATIONS + 1}."),
        ({"k": True}, "k is True."),
        ({"k": 3.0}, "k is 3.0."),
        ({"expect_line": "owls.md:L1-L2"}, "'expect_line' is not a field of a question. Did you mean expect_lines?"),
        ({"zzz": 1}, "'zzz' is not a field of a question. It may have: id, question, expect,"),
    ],
)  # fmt: skip
def test_a_row_that_is_wrong_is_named_with_what_to_do(change: dict[str, Any], said: str) -> None:
    message = refused(NOTHING, OWLS | change)
    assert message.startswith("asked.json, row 2")
    assert said in message


def test_two_questions_of_one_id_are_refused() -> None:
    assert "row 3: its id 'owls' is that of row 1." in refused(OWLS, NOTHING, OWLS)


def test_a_field_that_stands_twice_is_refused_and_not_lost() -> None:
    with pytest.raises(DatasetError, match=r"row 1: id stands twice\. Take one"):
        parse(b'[{"id": "a", "id": "b"}]', "asked.json")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is not JSON: Expecting value at line 1, column 1."),
        (b'[{"id": "a",\n}]', "at line 2, column 1."),
        (b"{}", "is not a list of questions."),
        (b"[]", "is not a list of questions."),
        (b"[7]", "row 1 is not an object."),
        (b"\xff\xfe[\x00", "is not UTF-8: byte 1 fits no character."),
        (b"[" * 200_000, "is not JSON that can be read."),
        (b"[" + b"9" * 10_000 + b"]", "is not JSON that can be read."),
        (b"[NaN]", "is not JSON that can be read."),
        (b" " * (MOST_BYTES + 1), "is larger than 32 MB."),
    ],
)
def test_what_is_no_list_of_questions_is_told(data: bytes, said: str) -> None:
    with pytest.raises(DatasetError) as caught:
        parse(data, "asked.json")
    assert str(caught.value).startswith("asked.json")
    assert said in str(caught.value)
    assert caught.value.remedy


def test_a_file_with_a_mark_of_its_order_is_read() -> None:
    assert len(parse(b"\xef\xbb\xbf" + json.dumps([OWLS]).encode(), "asked.json")) == 1


def test_a_message_holds_no_more_of_a_monster_than_fits_a_line() -> None:
    monster = "x" * 1_000_000
    for row in ({monster: 1}, OWLS | {"expect": monster}, OWLS | {"id": monster, "k": 0}):
        assert len(refused(row)) < 400


@pytest.mark.parametrize("path", ["nowhere.json", "."])
def test_a_file_that_cannot_be_read_is_named(path: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"cannot be read: .*\. Check the path"):
        read(tmp_path / path)


def test_a_pipe_is_read_and_a_device_without_end_is_not(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(json.dumps([OWLS])))
    writer.start()
    assert read(pipe)[0].id == "owls"
    writer.join()
    with pytest.raises(DatasetError, match="is larger than"):
        read(Path("/dev/zero"))


words = st.sampled_from(["", " ", "a", "citation", "negative", "a:L1-L2", "a:L2-L1", "\0\x1b[2J", "\udc80"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 300) | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*OWLS, "expect_lines", "k"]), json_values), st.booleans())
def test_any_row_is_a_question_or_an_error_with_its_place(fields: dict[str, Any], whole: bool) -> None:
    row = OWLS | fields if whole else fields
    found: Question | DatasetError
    try:
        (found,) = parse(json.dumps([row]).encode(), "asked.json")
    except DatasetError as error:
        found = error
    if isinstance(found, DatasetError):
        assert found.message.startswith("asked.json")
        assert found.remedy
    else:
        assert found.id == row["id"]
        assert found.place_wanted == bool(found.path_contains or found.lines)


spans = st.tuples(st.integers(1, 30), st.integers(0, 9)).map(lambda span: (span[0], span[0] + span[1]))


@given(spans, spans)
def test_any_line_in_common_answers_and_no_other(wanted: tuple[int, int], cited: tuple[int, int]) -> None:
    question = Question("q", "q", Expect.CITATION, lines=Lines("a.md", *wanted))
    common = set(range(wanted[0], wanted[1] + 1)) & set(range(cited[0], cited[1] + 1))
    assert question.wants("a.md", *cited) == bool(common)
    assert not question.wants("b/a.md", *cited)


def test_a_place_may_be_named_by_both_and_then_both_must_hold() -> None:
    question = Question("q", "q", Expect.CITATION, "work/", Lines("work/a.md", 3, 4))
    assert question.wants("work/a.md", 4, 9)
    assert not question.wants("work/b.md", 4, 9)
    assert not Question("q", "q", Expect.CITATION, "home/", Lines("work/a.md", 3, 4)).wants("work/a.md", 3, 4)


def test_a_name_is_the_same_however_its_letters_are_composed() -> None:
    for lines in (None, Lines("Stra\u00dfe/\u00e4rger.md", 1, 1)):
        assert Question("q", "q", Expect.CITATION, "\u00e4rger", lines).wants(
            "Stra\u00dfe/a\u0308rger.md", 1, 1
        )


def test_a_question_that_expects_nothing_wants_no_citation() -> None:
    assert not Question("q", "q", Expect.NEGATIVE).wants("a.md", 1, 1)


def test_questions_about_notes_that_are_not_there_are_found_out() -> None:
    questions = parsed(
        OWLS,
        NOTHING,
        OWLS | {"id": "gone", "expect_path_contains": "herons"},
        OWLS | {"id": "lines", "expect_path_contains": None, "expect_lines": "owls.md:L1-L2"},
        OWLS | {"id": "there", "expect_path_contains": None, "expect_lines": "birds/owls.md:L1-L2"},
    )
    assert absent(questions, ["birds/owls.md", "plan.md"]) == ("gone", "lines")
    assert absent(questions, []) == ("owls", "gone", "lines", "there")
