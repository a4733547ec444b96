"""`noctuary ask`: what it prints in each outcome, by pipe and on a terminal, and how it is cancelled."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from tests.hostile import MARK, PAYLOADS, STEERING, obeyed
from tests.integration.line import NOTES
from tests.integration.shell import on_terminal
from tests.scripted_llm import MODEL, ScriptedLLM
from tests.support import eventually
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.line import Line
    from tests.integration.shell import Shell

ASK = ("ask", "--mode", "keyword", "--path", "log.md")
FIRST = "log.md:L1-L3"


@contextmanager
def in_thread() -> Iterator[ScriptedLLM]:
    """A scripted server on a loop of its own, for tests that are not asynchronous and for processes."""
    loop, server = asyncio.new_event_loop(), ScriptedLLM()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def llm(noctuary: Line, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedLLM]:
    """A model that the environment names, and an index."""
    with in_thread() as server:
        for name, value in server.environment("ollama").items():
            monkeypatch.setenv(name, value)
        noctuary.index()
        yield server


@pytest.fixture
def beside(shell: Shell, tmp_path: Path) -> Iterator[ScriptedLLM]:
    """The same for commands that are processes."""
    for path, text in NOTES.items():
        file = tmp_path / "notes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with in_thread() as server:
        shell.env.update(server.environment("ollama"))
        assert shell.run("index", str(tmp_path / "notes"), "--no-embed").returncode == exits.DONE
        yield server


def test_an_answer_a_blank_line_and_its_sources(noctuary: Line, llm: ScriptedLLM) -> None:
    llm.reply("A heron stood ", "in the ford [1]. ", "\nAnother came [2]", ".\n\n")
    asked = noctuary(*ASK, "where", "did", "the", "heron", "stand")
    assert asked.status == exits.DONE
    assert asked.out == (
        "A heron stood in the ford [1]. \nAnother came [2].\n\nSources:\n[1] log.md:L1-L3\n[2] log.md:L5-L7\n"
    )
    assert asked.err == ""
    assert "where did the heron stand" in llm.asked[0].said


def test_what_has_no_source_is_said_below(noctuary: Line, llm: ScriptedLLM) -> None:
    llm.reply("In the ford [7].")
    asked = noctuary(*ASK, "heron ford", "--k", "1")
    assert asked.status == exits.DONE
    assert asked.out.endswith(
        "Sources:\n[1] log.md:L1-L3\n\nUnsupported: [7] points to nothing: the only passage is [1].\n"
    )
    llm.reply("In the ford.")
    assert noctuary(*ASK, "heron ford").out.endswith("\n\nUnsupported: The answer names no source.\n")
    llm.reply("The notes do not say.")
    assert "Unsupported" not in noctuary(*ASK, "heron ford").out


def test_a_source_that_changed_is_told(noctuary: Line, llm: ScriptedLLM) -> None:
    noctuary.write("log.md", "# Log\n\nThe bittern stood in the ford.\n")
    llm.reply("In the ford [1].")
    assert f"[1] {FIRST}  (changed)\n" in noctuary(*ASK, "heron ford", "--k", "1").out


def test_without_a_model_the_citations_are_printed_as_search_does(noctuary: Line) -> None:
    noctuary.index()
    asked, found = noctuary(*ASK, "ford"), noctuary("search", *ASK[1:], "ford")
    assert (asked.status, asked.out) == (exits.DONE, found.out)
    assert asked.err.startswith("There is no answer: No language model is set.")
    assert asked.err.count("\n") == 1


def test_without_evidence_no_model_is_called(noctuary: Line, llm: ScriptedLLM) -> None:
    asked = noctuary(*ASK, "zebra")
    assert (asked.status, asked.out) == (exits.FOUND_NOTHING, "No evidence found for that query.\n")
    asked = noctuary("ask", "heron", "--path", "nowhere/*", "--json")
    assert (asked.status, asked.json["outcome"], asked.json["citations"]) == (1, "no_evidence", [])
    assert asked.err.startswith("No indexed file matches --path 'nowhere/*'.")
    assert not llm.asked


def test_when_the_model_fails_the_citations_are_printed_and_the_status_is_2(
    noctuary: Line, llm: ScriptedLLM
) -> None:
    llm.reply("In ", "the ", "ford", cut_after=2)
    asked = noctuary(*ASK, "ford", "--k", "1")
    assert asked.status == exits.ERROR
    assert asked.out.startswith(f"In the\n\n{FIRST}\n    # Log\n")
    assert asked.err.startswith("Answer: ")
    assert asked.err.count("\n") == 1
    llm.reply(status=404, error=f"model '{MODEL}' not found")
    asked = noctuary(*ASK, "ford", "--json")
    assert (asked.status, asked.json["outcome"], asked.json["answer"]) == (exits.ERROR, "citations", None)
    assert "ollama pull" in asked.json["trouble"]
    assert asked.json["citations"]


def test_an_unknown_prompt_is_told_with_those_there_are(
    noctuary: Line, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPT_VERSION", "ask_v99")
    asked = noctuary(*ASK, "ford")
    assert asked.status == exits.ERROR
    assert asked.err == "Answer: There is no prompt 'ask_v99'. There are: ask_v1.\n"
    assert asked.out.startswith(FIRST)


def test_json_holds_everything(noctuary: Line, llm: ScriptedLLM) -> None:
    llm.reply("In the ford [1, 9].", tokens=(50, 6))
    asked = noctuary(*ASK, "ford", "--json")
    found = asked.json
    assert list(found) == [
        *("question", "outcome", "answer", "citations", "marks", "unsupported", "declined", "truncated"),
        *("trouble", "prompt_version", "provider", "model", "tokens", "seconds", "notes"),
    ]
    assert (found["question"], found["outcome"]) == ("ford", "answer")
    assert found["answer"] == "In the ford [1, 9]."
    assert found["citations"] == noctuary("search", *ASK[1:], "ford", "--json").json["citations"]
    place = {"start": 12, "end": 18}
    assert found["marks"] == [
        {**place, "number": 1, "reference": FIRST},
        {**place, "number": 9, "reference": None},
    ]
    assert len(found["unsupported"]) == 1
    assert (found["prompt_version"], found["provider"], found["model"]) == ("ask_v1", "ollama", MODEL)
    assert found["tokens"] == {"prompt": 50, "completion": 6}
    assert found["trouble"] is None


def test_an_ask_leaves_one_trace(noctuary: Line, llm: ScriptedLLM) -> None:
    llm.reply("In the ford [1].", tokens=(50, 6))
    noctuary(*ASK, "ford")
    noctuary(*ASK, "zebra")
    none, asked = noctuary("traces", "--json").json["traces"]
    assert (asked["kind"], asked["door"], asked["query"]) == ("ask", "noctuary ask", "ford")
    assert (asked["answered"], asked["prompt_version"], asked["model"]) == (True, "ask_v1", MODEL)
    assert (asked["prompt_tokens"], asked["completion_tokens"]) == (50, 6)
    assert (none["kind"], none["query"], none["answered"], none["model"]) == ("ask", "zebra", False, None)


def test_no_answer_steers_the_terminal_however_it_is_torn(shell: Shell, beside: ScriptedLLM) -> None:
    text = " ".join([*STEERING.values(), *(each for each in PAYLOADS.values() if len(each) < 500)])
    for pieces in (text, [text], [text[at : at + 3] for at in range(0, len(text), 3)]):
        beside.reply(*pieces)
        status, got = on_terminal(shell, *ASK, "ford")
        assert status == exits.DONE
        assert not obeyed(got)
        shown = got.decode()
        assert shown.count(MARK) >= text.count(MARK)
        assert "␛]52;c;T1dORUQ=␇" in shown
        assert "Sources:" in shown


def test_it_is_shown_as_it_is_written_and_ctrl_c_cancels_it(shell: Shell, beside: ScriptedLLM) -> None:
    beside.reply("The heron ", "stood", hold_after=1)
    with Terminal(shell.env, *ASK, "ford", cwd=shell.cwd) as terminal:
        terminal.until("The heron")
        terminal.press("\x03")
        asyncio.run(eventually(terminal.ended))
        assert terminal.ended() == (exits.INTERRUPTED,)
        asyncio.run(eventually(beside.hung_up.is_set))
    assert b"The heron" in terminal.output
    assert b"Traceback" not in terminal.output
    assert b"Sources" not in terminal.output


def test_a_signal_ends_it_and_is_told_to_the_model(shell: Shell, beside: ScriptedLLM) -> None:
    beside.reply("The heron ", "stood", hold_after=1)
    process = shell.start(*ASK, "ford")
    asyncio.run(eventually(beside.held.is_set))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (-signal.SIGTERM, "The heron", "")
    asyncio.run(eventually(beside.hung_up.is_set))


def test_the_answer_goes_out_plain_by_pipe(shell: Shell, beside: ScriptedLLM) -> None:
    beside.reply("In the \x1b[31mford [1].")
    done = shell.run(*ASK, "ford", "--k", "1")
    assert done.stdout == f"In the ␛[31mford [1].\n\nSources:\n[1] {FIRST}\n"
    beside.reply("In the \x1b[31mford [1].")
    assert json.loads(shell.run(*ASK, "ford", "--json").stdout)["answer"] == "In the \x1b[31mford [1]."
