"""`noctuary write`: what it prints, by pipe and on a terminal, and what an interrupt leaves."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from tests.hostile import obeyed
from tests.integration.line import NOTES
from tests.integration.shell import SECONDS, on_terminal
from tests.integration.test_cli_ask import in_thread
from tests.integration.test_cli_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.integration.shell import Shell
    from tests.scripted_llm import ScriptedLLM

TEXT = "# Herons\n\nOne stood in the ford (log.md:L1-L3).\n"
NOTE = [("write_note", {"path": "birds/herons.md", "text": TEXT})]


@pytest.fixture
def notes(shell: Shell, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    for path, text in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert shell.run("index", str(folder), "--no-embed").returncode == 0
    return folder


@pytest.fixture
def llm(shell: Shell, notes: Path) -> Iterator[ScriptedLLM]:
    with in_thread() as server:
        shell.env.update(server.environment("ollama"))
        yield server


def test_the_path_is_printed_and_the_note_is_found(shell: Shell, notes: Path, llm: ScriptedLLM) -> None:
    llm.reply(calls=[("search_notes", {"query": "heron"})])
    llm.reply(calls=NOTE)
    done = shell.run("write", "a", "note", "about", "herons")
    assert (done.returncode, done.stderr) == (exits.DONE, "")
    assert done.stdout == f"{notes}/birds/herons.md\n"
    assert "a note about herons" in llm.asked[0].said
    assert (notes / "birds/herons.md").read_text() == TEXT
    found = shell.run("search", "heron ford", "--mode", "keyword", "--path", "birds/")
    assert found.stdout.startswith("birds/herons.md:L1-L3\n")


def test_a_dry_run_prints_the_note_and_json_is_json(shell: Shell, notes: Path, llm: ScriptedLLM) -> None:
    llm.reply(calls=NOTE)
    done = shell.run("write", "--dry-run", "herons")
    assert (done.returncode, done.stdout) == (exits.DONE, f"{notes}/birds/herons.md\n\n{TEXT}")
    assert not (notes / "birds").exists()
    llm.reply(calls=NOTE, tokens=(50, 9))
    shown = json.loads(shell.run("write", "herons", "--json", "--folder", str(notes)).stdout)
    assert shown == {
        "folder": str(notes), "path": "birds/herons.md", "text": TEXT, "dry_run": False, "indexed": True,
        "steps": [f"Wrote birds/herons.md, {len(TEXT)} bytes."], "tokens": {"prompt": 50, "completion": 9},
    }  # fmt: skip


def test_steps_are_told_to_who_watches_and_a_failure_is_a_sentence(
    shell: Shell, notes: Path, llm: ScriptedLLM
) -> None:
    llm.reply(calls=[("search_notes", {"query": "\x1b[2Jheron\x9b31m"})])
    llm.reply(calls=[("write_note", {"path": "../\x1b]52;c;aGk=\x07.md", "text": "x"})])
    llm.reply("Done.")
    llm.reply("Really done.")
    status, got = on_terminal(shell, "write", "herons")
    assert status == exits.ERROR
    assert obeyed(got) == []
    lines = got.decode().replace("\r\n", "\n").splitlines()
    assert [line[:2] for line in lines[:4]] == ["1.", "2.", "3.", "4."]
    assert lines[0].startswith("1. Searched for ")
    assert lines[1].startswith("2. Refused: The path ../")
    assert lines[-1].startswith(
        "Writing: scripted:1b wrote no note: it called no tool in 2 turns. Set AGENT_MODEL"
    )
    llm.reply("Done.")
    llm.reply("Really done.")
    quiet = shell.run("write", "herons")
    assert (quiet.returncode, quiet.stdout, quiet.stderr.count("\n")) == (exits.ERROR, "", 1)


def test_without_a_model_it_says_so(shell: Shell, notes: Path) -> None:
    done = shell.run("write", "herons")
    assert (done.returncode, done.stdout) == (exits.ERROR, "")
    assert done.stderr.startswith("Language model: No language model is set.")
    assert "empty" in shell.run("write", " ").stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(
    shell: Shell, notes: Path, llm: ScriptedLLM, number: signal.Signals
) -> None:
    before = sorted(notes.rglob("*"))
    llm.reply("Let ", "me think.", hold_after=1)
    process = shell.start("write", "herons")
    until(llm.held.is_set)
    process.send_signal(number)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == (exits.INTERRUPTED if number == signal.SIGINT else -number)
    assert (out, err.strip()) == ("", "")
    until(llm.hung_up.is_set)
    assert sorted(notes.rglob("*")) == before
