"""`noctuary mcp` by the SDK's own client: what the tools give, and that they refuse in a sentence."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from engine.doors.mcp.results import NOTICE
from tests.hostile import MARK, PAYLOADS, encoded, obeyed, write_notes
from tests.integration.line import NOTES
from tests.integration.mcp_client import client
from tests.scripted_llm import ScriptedLLM
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp.client.client import Client

    from tests.integration.shell import Shell

WORDS = {"mode": "keyword"}
"""Without the model, which takes a second to load in each of these processes."""


@pytest.fixture
def notes(shell: Shell, tmp_path: Path) -> Path:
    """The notes, indexed."""
    folder = tmp_path / "notes"
    for path, text in NOTES.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    done = shell.run("index", str(folder), "--no-embed")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
async def llm() -> AsyncIterator[ScriptedLLM]:
    async with ScriptedLLM() as server:
        yield server


def text(result: Any) -> str:
    (content,) = result.content
    return str(content.text)


async def refusal(opened: Client, tool: str, arguments: dict[str, Any]) -> str:
    """The sentence with which a call is refused."""
    result = await opened.call_tool(tool, arguments)
    assert result.is_error, result
    assert result.structured_content is None
    told = text(result)
    assert "\n" not in told
    assert "Traceback" not in told
    return told


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_of_the_notes_only_read_and_say_what_they_take_and_give(
    shell: Shell, mode: str
) -> None:
    async with client(shell, "--no-watch", mode=mode) as opened:
        assert opened.server_info.name == "noctuary"
        assert "not trusted" in (opened.instructions or "")
        tools = {tool.name: tool for tool in (await opened.list_tools()).tools}
    for name, question in (("search", "query"), ("ask", "question")):
        tool = tools[name]
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False
        assert tool.description
        assert set(tool.input_schema["properties"]) == {question, "k", "path", "folder", "heading", "mode"}
        assert tool.input_schema["required"] == [question]
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        Draft202012Validator.check_schema(tool.output_schema)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_search_gives_the_citations_of_the_command_with_their_lines(
    shell: Shell, notes: Path, mode: str
) -> None:
    async with client(shell, "--no-watch", mode=mode) as opened:
        result = await opened.call_tool("search", {"query": "heron", "k": 5, **WORDS})
        (tool,) = [tool for tool in (await opened.list_tools()).tools if tool.name == "search"]
    assert not result.is_error
    Draft202012Validator(tool.output_schema or {}).validate(result.structured_content)
    printed = json.loads(shell.run("search", "heron", "--k", "5", "--mode", "keyword", "--json").stdout)
    assert len(printed["citations"]) == 3
    for ours, theirs in zip(result.structured_content["citations"], printed["citations"], strict=True):
        assert (
            ours == {"reference": f"{theirs['path']}:L{theirs['line_start']}-L{theirs['line_end']}"} | theirs
        )
    told = text(result)
    assert told.startswith(f"{NOTICE}\n\n")
    assert "\n\nlog.md:L1-L3\n    # Log\n\n    The heron stood in the ford.\n\n" in told
    assert result.structured_content["notice"] == NOTICE


async def test_a_search_is_narrowed_by_each_parameter(shell: Shell, notes: Path) -> None:
    async with client(shell, "--no-watch") as opened:

        async def paths(**narrowed: object) -> list[str]:
            result = await opened.call_tool("search", {"query": "heron", "k": 9, **WORDS, **narrowed})
            assert not result.is_error, result
            return sorted(found["reference"] for found in result.structured_content["citations"])

        every = await paths()
        assert len(every) == 3
        assert await paths(path=None, folder=None, heading=None) == every
        assert len(await paths(k=1)) == 1
        assert len(await paths(k=2.0)) == 2
        assert await paths(path="work/") == ["work/plan.md:L1-L3"]
        assert await paths(folder=str(notes / "work")) == ["work/plan.md:L1-L3"]
        assert await paths(heading="Evening") == ["log.md:L5-L7"]


async def test_nothing_found_is_no_error_and_tells_why(shell: Shell, notes: Path) -> None:
    async with client(shell, "--no-watch") as opened:
        nothing = await opened.call_tool("search", {"query": "zebra", **WORDS})
        no_file = await opened.call_tool("search", {"query": "heron", "path": "nowhere/", **WORDS})
        asked = await opened.call_tool("ask", {"question": "zebra", **WORDS})
    assert not nothing.is_error
    assert text(nothing) == "No evidence found for that query."
    assert nothing.structured_content["citations"] == []
    assert "No indexed file matches the path 'nowhere/'." in text(no_file)
    assert asked.structured_content["outcome"] == "no_evidence"
    assert asked.structured_content["answer"] is None


async def test_what_cannot_be_done_is_told_in_a_sentence(shell: Shell, notes: Path) -> None:
    refused = {
        "'query' has to be a text of 1 to 8,000 characters.": [
            {}, {"query": ""}, {"query": " \n"}, {"query": None}, {"query": 7}, {"query": ["heron"]},
            {"query": "x" * 8_001},
        ],
        "'k' has to be a whole number from 1 to 50.": [
            {"query": "heron", "k": k} for k in (0, -1, 51, 1.5, True, "3", [3], 1e300)
        ],
        "'mode' has to be one of hybrid, keyword, vector.": [
            {"query": "heron", "mode": mode} for mode in ("", "fast", 1, {})
        ],
        "There is no parameter 'limit'.": [{"query": "heron", "limit": 3}],
        "The folder /nowhere is not indexed.": [{"query": "heron", "folder": "/nowhere"}],
        "is no path: it holds a NUL.": [{"query": "heron", "folder": "/a\0b"}],
        "'path' has to be a text": [{"query": "heron", "path": ""}, {"query": "heron", "path": 3}],
    }  # fmt: skip
    async with client(shell, "--no-watch") as opened:
        for sentence, calls in refused.items():
            for arguments in calls:
                assert sentence in await refusal(opened, "search", arguments), arguments
        with pytest.raises(MCPError, match="There are: search, ask"):
            await opened.call_tool("delete", {"query": "heron"})
        assert not (await opened.call_tool("search", {"query": "heron", **WORDS})).is_error


async def test_without_a_language_model_an_ask_cites_and_says_so(shell: Shell, notes: Path) -> None:
    async with client(shell, "--no-watch") as opened:
        result = await opened.call_tool("ask", {"question": "where was the heron", **WORDS})
    assert not result.is_error
    value = result.structured_content
    assert (value["outcome"], value["answer"], value["model"]) == ("citations", None, None)
    assert value["citations"]
    assert value["remarks"] == [
        "There is no answer: No language model is set. Set LLM_PROVIDER to ollama, claude, openai or grok."
    ]
    assert value["remarks"][0] in text(result)
    assert "log.md:L1-L3\n    # Log" in text(result)


async def test_an_answer_comes_with_its_sources(shell: Shell, notes: Path, llm: ScriptedLLM) -> None:
    llm.reply("It stood ", "in the ford [1], so they say [7].\nSources:\n[1] fake.md:L1-L1")
    async with client(shell, "--no-watch", **llm.environment("ollama")) as opened:
        result = await opened.call_tool("ask", {"question": "heron", "heading": "Evening", **WORDS})
        (tool,) = [tool for tool in (await opened.list_tools()).tools if tool.name == "ask"]
    value = result.structured_content
    Draft202012Validator(tool.output_schema or {}).validate(value)
    assert value["outcome"] == "answer"
    assert value["answer"].startswith("It stood in the ford [1]")
    assert [found["reference"] for found in value["citations"]] == ["log.md:L5-L7"]
    assert value["model"].startswith("ollama/")
    assert "[7] points to nothing" in value["unsupported"][0]
    told = text(result)
    assert told.startswith(NOTICE)
    assert "\n\nSources:\n[1] log.md:L5-L7\n\nUnsupported: [7] points" in told
    assert "\n    Sources:\n    [1] fake.md:L1-L1\n" in told, "what the model writes cannot pass for ours"


async def test_a_model_that_fails_leaves_the_citations(shell: Shell, notes: Path, llm: ScriptedLLM) -> None:
    llm.reply(status=400, error="no such thing \x1b[2J")
    async with client(shell, "--no-watch", **llm.environment("ollama")) as opened:
        result = await opened.call_tool("ask", {"question": "heron", **WORDS})
    assert not result.is_error
    assert result.structured_content["outcome"] == "citations"
    assert len(result.structured_content["citations"]) == 3
    assert "There is no answer: Ollama failed on" in text(result)
    assert "\x1b" not in text(result)


async def test_a_call_that_is_cancelled_hangs_up_on_the_model(
    shell: Shell, notes: Path, llm: ScriptedLLM
) -> None:
    llm.reply("It ", "stood.", hold_after=1)
    async with client(shell, "--no-watch", **llm.environment("ollama")) as opened:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(opened.call_tool, "ask", {"question": "heron", **WORDS})
                await llm.held.wait()
                scope.cancel()
        async with asyncio.timeout(20):
            await llm.hung_up.wait()
        # It goes on serving.
        assert not (await opened.call_tool("search", {"query": "heron", **WORDS})).is_error


async def test_a_long_answer_gives_signs_of_life(shell: Shell, notes: Path, llm: ScriptedLLM) -> None:
    llm.reply("It ", "stood ", "[1].", hold_after=1)
    told: list[tuple[float, str | None]] = []

    async def hear(progress: float, _total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async def open_later() -> None:
        await llm.held.wait()
        await anyio.sleep(1.1)  # longer than the pause between two signs
        llm.gate.set()

    opening = asyncio.create_task(open_later())
    async with client(shell, "--no-watch", **llm.environment("ollama")) as opened:
        result = await opened.call_tool("ask", {"question": "heron", **WORDS}, progress_callback=hear)
    await opening
    assert result.structured_content["outcome"] == "answer"
    assert [message for _, message in told] == ["The answer is being written."]


async def test_hostile_questions_and_notes_are_text(shell: Shell, tmp_path: Path) -> None:
    root = write_notes(tmp_path / "hostile")
    shell.run("index", str(root), "--no-embed")
    async with client(shell, "--no-watch") as opened:
        found = await opened.call_tool("search", {"query": "owl", "k": 50, **WORDS})
        assert len(found.structured_content["citations"]) > 20
        assert MARK in text(found)
        assert obeyed(text(found).encode()) == []
        json.dumps(found.structured_content).encode("ascii")
        assert not any(
            "\ud800" <= letter <= "\udfff"
            for letter in json.dumps(found.structured_content, ensure_ascii=False)
        )
        for payload in PAYLOADS.values():
            wire = encoded(payload).decode("utf-8", "replace")
            for tool, question in (("search", "query"), ("ask", "question")):
                for name in (question, "path", "heading", "folder"):
                    arguments = {question: "owl", **WORDS, name: wire}
                    result = await opened.call_tool(tool, arguments)
                    assert obeyed(text(result).encode()) == [], (tool, name, payload)
                    assert "Noctuary met a fault" not in text(result), (tool, name, payload)


async def test_two_clients_at_once_each_get_their_own(shell: Shell, notes: Path, tmp_path: Path) -> None:
    words = {"heron": 3, "lantern": 1}

    async def one(name: str) -> None:
        async with client(shell, complaints=tmp_path / name) as opened:
            for _ in range(5):
                results = await asyncio.gather(
                    *(opened.call_tool("search", {"query": word, "k": 9, **WORDS}) for word in words)
                )
                counts = [len(result.structured_content["citations"]) for result in results]
                assert counts == list(words.values())

    await asyncio.gather(one("first"), one("second"))


async def test_the_index_is_live_while_it_serves(shell: Shell, notes: Path) -> None:
    async with client(shell) as opened:
        (notes / "new.md").write_text("A kingfisher came.\n")

        async def found() -> bool:
            result = await opened.call_tool("search", {"query": "kingfisher", **WORDS})
            return bool(result.structured_content["citations"])

        await eventually(found)


async def test_a_database_that_is_not_there_is_told_at_each_call_and_awaited(
    shell: Shell, notes: Path
) -> None:
    more = {"NOCTUARY_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:9/none"}
    async with client(shell, complains="search failed: ", **more) as opened:
        assert len((await opened.list_tools()).tools) == 13
        for _ in range(2):
            told = await refusal(opened, "search", {"query": "heron"})
            assert "127.0.0.1" in told
            assert "hunter2" not in told
