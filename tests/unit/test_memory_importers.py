"""What other programs kept of conversations is read as turns: what was said, and nothing that was not."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import SourceError
from engine.memory.importers import READERS, chatgpt, claude_code, codex, kind_of, lines, plain
from engine.memory.importers.model import Exchange, ImportedTurn, Skip
from engine.memory.importers.turns import paired
from tests.conversations import chatgpt_conversation, claude, claude_session, codex_session
from tests.conversations import lines as written

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def exchanges(found: Iterable[ImportedTurn | Skip]) -> list[tuple[str, str | None]]:
    return [(each.input, each.response) for each in paired(found) if isinstance(each, Exchange)]


def reasons(found: Iterable[ImportedTurn | Skip]) -> Counter[str]:
    return Counter(each.reason for each in found if isinstance(each, Skip))


def test_of_a_claude_code_session_what_was_said_is_read(tmp_path: Path) -> None:
    path = claude_session(tmp_path / "-home-alice-heron" / "session-1.jsonl")
    assert exchanges(claude_code.read(path)) == [
        ("Which package manager?", "We use pnpm here.\n\nAs the lockfile says."),
        ("Thanks. And tests?", "With vitest."),
    ]
    assert reasons(claude_code.read(path)) == {
        "not a message": 2,
        "a command": 2,
        "a thought": 1,
        "a call of a tool": 1,
        "a result of a tool": 1,
        "said among subagents": 1,
        "written by the program": 1,
    }
    first = next(each for each in claude_code.read(path) if isinstance(each, ImportedTurn))
    assert (first.key, first.channel, first.origin) == ("1-2", "claude-code session-1", "session-1.jsonl:L5")
    assert first.at == datetime(2025, 3, 1, 10, 2, tzinfo=UTC)
    assert claude_code.files(tmp_path) == [path]


def test_a_summary_of_what_was_said_is_not_said_again(tmp_path: Path) -> None:
    rows = [claude("user", "This session is continued: …", 1, isCompactSummary=True)]
    assert exchanges(claude_code.read(written(tmp_path / "s.jsonl", rows))) == []


def test_of_a_codex_session_what_was_said_is_read(tmp_path: Path) -> None:
    path = codex_session(tmp_path / "2025" / "03" / "02" / "rollout-2025-03-02T10-00-00-c0de.jsonl")
    (tmp_path / "history.jsonl").write_text("{}\n")
    assert codex.files(tmp_path) == [path]
    assert exchanges(codex.read(path)) == [("Rename the heron module.", "It is called egret now.")]
    turn = next(each for each in codex.read(path) if isinstance(each, ImportedTurn))
    assert turn.channel == "codex c0de"


def test_an_early_codex_session_has_no_envelope(tmp_path: Path) -> None:
    rows = [
        {"id": "0ld", "timestamp": "2025-03-02T10:00:00Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi there."}]},
        {"record_type": "state"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
    ]
    path = written(tmp_path / "rollout-1.jsonl", rows)
    assert exchanges(codex.read(path)) == [("Hi there.", "Hello.")]


def test_of_chatgpt_the_path_that_was_kept_is_read_oldest_first(tmp_path: Path) -> None:
    newest = chatgpt_conversation("b", 1_700_000_100.0, ("user", "second"), ("assistant", "b"))
    oldest = chatgpt_conversation(
        "a", 1_700_000_000.0, ("system", "x"), ("user", "first"), ("assistant", "a")
    )
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([newest, oldest, 5]))
    assert exchanges(chatgpt.read(path)) == [("first", "a"), ("second", "b")]
    assert reasons(chatgpt.read(path)) == {
        "written by the program": 1,
        "not a conversation": 1,
        "not a message": 2,
    }
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.write(path, "export/conversations.json")
    assert exchanges(chatgpt.read(archive)) == [("first", "a"), ("second", "b")]


@pytest.mark.parametrize(
    "text", ['{"a": 1}', "[" * 100_000, '[{"a":', "", '"x"', "no", '[{"mapping": {"a"', "[1,]", "\ufeff"]
)
def test_what_is_not_chatgpt_s_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(text)
    with pytest.raises(SourceError, match=r"is not ChatGPT's conversations\.json") as error:
        list(chatgpt.read(path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["cut", "turned", "other"])
def test_a_damaged_zip_is_refused(tmp_path: Path, damage: str) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(
            "other.json" if damage == "other" else "conversations.json", json.dumps(["x" * 5000] * 50)
        )
    data = bytearray(archive.read_bytes())
    if damage == "turned":
        data[60:100] = bytes(40)
    archive.write_bytes(data[:50] if damage == "cut" else data)
    with pytest.raises(SourceError):
        list(chatgpt.read(archive))


def test_plain_lines_are_told_apart_by_what_they_say_and_how_often(tmp_path: Path) -> None:
    row = {"channel": "c", "role": "user", "text": "the same", "at": "2025-03-01T10:00:00Z", "speaker": "Ann"}
    path = written(tmp_path / "turns.jsonl", [row, row, {**row, "role": "assistant", "text": "so"}])
    first, second, _ = (each for each in plain.read(path) if isinstance(each, ImportedTurn))
    assert first.key != second.key
    assert next(each.key for each in plain.read(path) if isinstance(each, ImportedTurn)) == first.key
    assert (first.speaker, first.origin) == ("Ann", "turns.jsonl:L1")
    assert exchanges(plain.read(path)) == [("the same", None), ("the same", "so")]


def test_what_is_no_line_is_counted_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    path.write_bytes(
        b'nope\n[1]\n\n{"channel":"c","role":"robot","text":"x"}\n{"role":"user","text":"x"}\n{"chan'
    )
    found = list(plain.read(path))
    assert [(each.origin, each.reason) for each in found if isinstance(each, Skip)] == [
        ("turns.jsonl:L1", "not JSON"),
        ("turns.jsonl:L2", "not an object"),
        ("turns.jsonl:L4", "a role that is neither user nor assistant"),
        ("turns.jsonl:L5", "no channel"),
    ]
    assert len(found) == 4, "the last line is still being written"


def test_a_line_of_any_length_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    row = b'{"channel":"c","role":"user","text":"after"}\n'
    with path.open("wb") as file:
        file.write(b'{"text":"' + b"x" * (2 * lines.LONGEST_LINE) + b'"}\n' + row)
    assert [each.reason for each in plain.read(path) if isinstance(each, Skip)] == ["longer than 16 MB"]
    assert exchanges(plain.read(path)) == [("after", None)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-03-01T10:00:00Z", datetime(2025, 3, 1, 10, tzinfo=UTC)),
        ("2025-03-01T12:00:00+02:00", datetime(2025, 3, 1, 10, tzinfo=UTC)),
        ("2025-03-01 10:00", datetime(2025, 3, 1, 10, tzinfo=UTC)),
        (1_740_823_200, datetime(2025, 3, 1, 10, tzinfo=UTC)),
        (0, None),
        ("1970-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59-12:00", None),
        ("yesterday", None),
        (None, None),
        (True, None),
        (1e300, None),
        (float("nan"), None),
        ({}, None),
    ],
)
def test_a_time_is_one_of_somebody_s_life_or_none(value: object, expected: datetime | None) -> None:
    assert lines.moment(value) == expected


def test_answers_belong_to_the_question_of_their_channel() -> None:
    def turn(channel: str, author: str, text: str) -> ImportedTurn:
        return ImportedTurn(f"{channel}{text}", channel, author, text, None, "x")

    found = list(
        paired(
            [
                turn("a", "assistant", "hello"),
                turn("a", "user", "1"),
                turn("b", "user", "2"),
                turn("a", "assistant", "one"),
                turn("a", "assistant", "and"),
                turn("a", "user", "3"),
            ]
        )
    )
    assert found[0] == Skip("x", "an answer to nothing")
    told = [
        (each.channel, each.input, each.response, each.complete)
        for each in found
        if isinstance(each, Exchange)
    ]
    assert told == [("a", "1", "one\n\nand", True), ("b", "2", None, False), ("a", "3", None, False)]


def test_an_unknown_kind_names_those_there_are() -> None:
    with pytest.raises(SourceError, match="claude-code, codex, chatgpt, jsonl"):
        kind_of("gemini")


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "message", "content", "role", "text", "payload", "mapping", "author", "id", "parts"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(anything, max_size=6), tail=st.binary(max_size=40))
def test_no_file_is_a_fault(tmp_path: Path, rows: list[object], tail: bytes) -> None:
    """Whatever stands in it, a file is read, or refused in words."""
    path = tmp_path / "conversations.json"
    path.write_bytes("".join(json.dumps(row) + "\n" for row in rows).encode() + tail)
    for kind in ("claude-code", "codex", "jsonl"):
        for each in READERS[kind_of(kind)].read(path):
            assert isinstance(each, ImportedTurn | Skip)
    path.write_text(json.dumps(rows))
    assert all(isinstance(each, ImportedTurn | Skip) for each in chatgpt.read(path))
    path.write_bytes(path.read_bytes()[:-1] + tail)
    with suppress(SourceError):
        list(chatgpt.read(path))
