"""The parts of the MCP server that need no process: lines cut from pieces, and arguments read."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from engine.doors.mcp import arguments, wire
from engine.doors.mcp.tools import TOOLS
from engine.errors import FolderError, QueryError

SEARCH = TOOLS["search"].parameters
SCHEMA = Draft202012Validator(arguments.schema(SEARCH))

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 60), st.floats(0, 60), st.text("a \n~/\0é\ud800", max_size=5),
    st.sampled_from(["hybrid", "vector", "~root", [], {}, [1], {"a": None}]),
)  # fmt: skip
NAMES = st.sampled_from(["query", "k", "path", "folder", "heading", "mode", "other"])


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(1, 50)))
def test_lines_are_the_same_however_they_come_in(lines: list[bytes], sizes: list[int]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    stream = b"\n".join(lines)
    got: list[bytes] = []
    cutter = wire.Cutter(got.append)
    for size in [*sizes, len(stream)]:
        cutter.add(stream[:size])
        stream = stream[size:]
    cutter.end()
    assert got == [line.strip() for line in lines if line.strip()]


def test_a_line_that_is_too_long_is_dropped_and_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_LINE", 10)
    got: list[bytes] = []
    cutter = wire.Cutter(got.append)
    for _ in range(1_000):
        cutter.add(b"x" * 9)
        assert sum(map(len, cutter._parts)) <= 10
    cutter.add(b"x\nnext\n0123456789\n0123456789a\nlast\n")
    assert got == [b"next", b"0123456789", b"last"]


async def test_a_text_is_written_whole_also_when_its_writer_is_cancelled() -> None:
    read, write = os.pipe()
    out = wire.Out(write)
    text = "é" * 200_000  # more than a pipe holds
    writing = asyncio.create_task(out.write(text))
    await asyncio.sleep(0)
    writing.cancel()
    after = asyncio.create_task(out.write("end\n"))
    got = b""
    while not got.endswith(b"end\n"):
        got += await asyncio.to_thread(os.read, read, 65_536)
    await after
    assert got.decode() == f"{text}end\n"
    assert out.heard()
    os.close(read)
    assert not out.heard()
    os.close(write)


async def test_lines_wait_for_who_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LINES_HELD", 2)
    read, write = os.pipe()
    ended: list[bool] = []

    async def before_end() -> None:
        ended.append(True)

    lines = wire.Lines(read, before_end)
    os.write(write, b"".join(b"%d\n" % number for number in range(100)))
    os.close(write)
    assert [line async for line in lines] == [str(number) for number in range(100)]
    assert ended == [True]
    assert lines._lines.qsize() == 0
    os.close(read)


@given(st.dictionaries(NAMES, VALUES))
def test_arguments_are_read_as_the_schema_says_or_refused_in_a_sentence(given: dict[str, Any]) -> None:
    told = {name: value for name, value in given.items() if value is not None}
    # The schema cannot say what is blank, or what is no folder.
    blank = any(isinstance(value, str) and not value.strip() for value in told.values())
    try:
        options = arguments.read(SEARCH, given)
    except FolderError:
        return
    except QueryError:
        readable = SCHEMA.is_valid(told) and "other" not in given and not blank
        assert not readable
        return
    assert SCHEMA.is_valid(told)
    assert options["asked"] == given["query"]
    assert set(options) == {{"path": "path_glob", "query": "asked"}.get(name, name) for name in told}


@pytest.mark.parametrize("name", ["", "Query", "QUERY", "x" * 10_000, "\x1b[2J"])
def test_a_parameter_that_there_is_none_of_is_refused_briefly(name: str) -> None:
    with pytest.raises(QueryError, match=r"There is no parameter .*There are: query, k") as refused:
        arguments.read(SEARCH, {"query": "owl", name: 1})
    assert len(str(refused.value)) < 300
