"""Hostile text through every command, on a real terminal: none of it steers the terminal, or ends in a fault.

Many command lines run in one process, which is quicker; each goes through `cli.run`, as in a process of its own.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click
import pytest

from engine.doors import exits
from tests.command_tree import commands
from tests.hostile import MARK, NAMES, PAYLOADS, STEERING, encoded, obeyed, write_notes
from tests.integration.shell import Shell, on_terminal
from tests.scripted_ollama import Answer, ScriptedOllama, in_thread
from tests.support import eventually
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RUN = """
import json, os, sys
from pathlib import Path
from engine.doors import cli
from tui.main import console
done = []
for environment, line in json.loads(Path(sys.argv[1]).read_text()):
    os.environ.update(environment)
    try:
        done.append(cli.run(line, console=console))
    except Exception as fault:
        done.append(repr(fault))
    for name in environment:
        del os.environ[name]
Path(sys.argv[2]).write_text(json.dumps(done))
"""

WORDS = [
    os.fsdecode(encoded("".join(texts).replace("\0", "")))
    for texts in (PAYLOADS.values(), reversed(PAYLOADS.values()))
]
"""All payloads in one, and again in reverse: a text may be shown in part."""

SHORT = "".join(payload for payload in STEERING.values() if "\0" not in payload)
"""What there is of them in UTF-8, and short enough for a line."""


class Lines:
    """Command lines one after the other in one process on a real terminal."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell = shell
        self.notes = folder / "notes"
        self._asked, self._done = folder / "asked.json", folder / "done.json"
        shell.program = ("-c", RUN)

    def __call__(
        self, *lines: tuple[str, ...], environments: tuple[Mapping[str, str], ...] = ({},)
    ) -> tuple[list[int], str]:
        """The exit statuses, and all that the terminal got, which is nothing but text on lines."""
        asked = [(environment, line) for environment in environments for line in lines]
        self._asked.write_text(json.dumps(asked))
        status, got = on_terminal(self.shell, str(self._asked), str(self._done))
        assert status == 0, got[-2000:]
        statuses = json.loads(self._done.read_text())
        faults = [pair for pair in zip(asked, statuses, strict=True) if not isinstance(pair[1], int)]
        assert not faults, ascii(faults[0])[-2000:]
        assert not obeyed(got)
        assert not list(self.shell.cwd.rglob(MARK)), "a shell obeyed"
        return statuses, got.decode()


@pytest.fixture
def lines(shell: Shell, tmp_path: Path) -> Lines:
    return Lines(shell, tmp_path)


@pytest.fixture
def vault(lines: Lines) -> Path:
    return write_notes(lines.notes)


def given(word: str) -> list[tuple[str, ...]]:
    """The word wherever a command takes one, and where none does."""
    found = [(word,), (f"--{word}",), ("--", word)]
    for name, command in commands():
        typed = name.split()
        found += [(*typed, word), (*typed, f"--{word}"), (*typed, "--", word)]
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                found.append(
                    (*typed, option.opts[0], word, *(["owl"] if name in {"search", "ask", "write"} else []))
                )
    return found


@pytest.mark.parametrize("word", WORDS, ids=["forward", "in reverse"])
def test_no_argument_of_any_command_steers_the_terminal(lines: Lines, word: str) -> None:
    asked = given(word)
    assert len(asked) > 90
    statuses, got = lines(*asked)
    assert set(statuses) == {exits.ERROR, exits.FOUND_NOTHING, exits.DONE}
    assert got.count(f"0;{MARK}") > 60


@pytest.mark.parametrize("word", ["x" * 300, os.fsdecode(b"\xff\x9b")], ids=["long", "not UTF-8"])
def test_no_word_that_no_file_can_be_called_is_a_fault(lines: Lines, word: str) -> None:
    lines(*given(word))


def test_no_name_and_no_text_of_a_note_steers_the_terminal(lines: Lines, vault: Path) -> None:
    _, got = lines(
        ("index", str(vault)),
        ("search", "owl", "--k", "100", "--explain"),
        ("ask", "owl", "--k", "100"),
        ("search", "owl", "--k", "100", "--json"),
        ("search", SHORT, "--k", "100", "--mode", "keyword"),
        *[("search", "owl", "--heading", NAMES[0], "--path", "**/*.md", "--mode", "vector")],
        *[(name,) for name in ("status", "jobs", "drift", "inbox", "log", "folders", "models")],
        *[(name, "--json") for name in ("status", "jobs", "drift", "inbox", "log", "folders")],
        ("jobs", "--status", "failed", "--limit", "500", "--filter", MARK),
        ("retry",),
        *[("drift", str(folder)) for folder in sorted(vault.iterdir())[:5]],
        *[("ingest", "--path", str(file)) for file in sorted(vault.rglob("*.md"))[:20]],
        *[
            ("folders", verb, str(folder))
            for folder in sorted(vault.iterdir())[:10]
            for verb in ("add", "remove")
        ],
        ("doctor",),
    )
    for symbol in ("␛]52;c;T1dORUQ=␇", "⟦U+009B⟧2J", "⟦U+202E⟧", "\\xff", "␊", "日本語"):
        assert symbol in got


@pytest.mark.parametrize("form", [("--text",), ()], ids=["text", "json"])
async def test_nothing_that_a_service_tells_steers_the_terminal(
    shell: Shell, vault: Path, form: tuple[str, ...]
) -> None:
    with Terminal(shell.env, "watch", "--no-work", "--path", str(vault), *form, cwd=shell.cwd) as screen:
        screen.until("Watching")
        screen.until("pending")
        with Terminal(shell.env, "worker", "--no-embed", *form, cwd=shell.cwd) as beside:
            beside.until("is encoded as UTF-16")
            beside.until(MARK)
            beside.press("\x03")
            assert await eventually(beside.ended) == (exits.INTERRUPTED,)
        screen.press("\x03")
        assert await eventually(screen.ended) == (exits.INTERRUPTED,)
    for output in (screen.output, beside.output):
        assert not obeyed(output.replace(b"^C", b""))
    assert MARK in beside.output.decode()


def test_no_file_of_questions_steers_the_terminal(lines: Lines, tmp_path: Path) -> None:
    lines.notes.mkdir()
    (lines.notes / "a.md").write_text(f"# owl\n\nowl {SHORT}\n")
    labelled = {"id": "1", "question": f"owl {SHORT}", "expect": "citation", "expect_path_contains": "a.md"}
    files = {
        "good": json.dumps([{**labelled, "id": SHORT}, {**labelled, "expect_path_contains": SHORT}]),
        "odd": json.dumps([{**labelled, "expect": SHORT}]),
        "unknown": json.dumps([{**labelled, SHORT: SHORT}]),
        "lines": f"{SHORT}\n" * 3,
        NAMES[0]: "{",
        "bytes": "",
    }
    for file, text in files.items():
        (tmp_path / file).write_text(text)
    (tmp_path / "bytes").write_bytes(b"\xff\x1b[2J")
    statuses, got = lines(
        ("index", str(lines.notes)), *[("models", "compare", str(tmp_path / file)) for file in files]
    )
    assert statuses == [exits.DONE, exits.DONE, *[exits.ERROR] * (len(files) - 1)]
    assert got.count(MARK) >= 3, "an id, a wrong value and the name of a file are told"


def test_nobody_can_forge_a_line_by_the_name_of_a_file(lines: Lines) -> None:
    lines.notes.mkdir()
    (lines.notes / "a\nNo drift.\n.md").write_text("owl\n")
    _, got = lines(
        ("index", str(lines.notes), "--no-embed"),
        ("search", "owl", "--mode", "keyword", "--explain"),
        ("jobs",),
        ("folders", "add", str(lines.notes / "a\nNo drift.\n.md")),
    )
    assert got.count("a␊No drift.␊.md") == 3
    assert "\nNo drift." not in got


HOSTILE_ENVIRONMENT = tuple(
    {name: SHORT}
    for name in (
        "EMBEDDINGS_MODEL", "EMBEDDINGS_PROVIDER", "CORPUS_PATH", "DATABASE_URL", "NOCTUARY_DATABASE_URL", "OLLAMA_URL",
        "NOCTUARY_EDITOR", "VISUAL", "NOCTUARY_POLL_INTERVAL", "NOCTUARY_LOG_LEVEL", "XDG_CONFIG_HOME",
    )
)  # fmt: skip


def test_no_value_of_the_environment_steers_the_terminal(lines: Lines) -> None:
    _, got = lines(("config",), ("status",), environments=HOSTILE_ENVIRONMENT)
    assert got.count(f"0;{MARK}") > len(HOSTILE_ENVIRONMENT)


@pytest.mark.parametrize("quoted", [True, False], ids=["values", "names"])
def test_no_file_of_settings_steers_the_terminal(lines: Lines, tmp_path: Path, quoted: bool) -> None:
    config = tmp_path / "xdg" / "config" / "noctuary" / "config.toml"
    config.parent.mkdir(parents=True)
    name, value = json.dumps("editor" if quoted else STEERING["title"]), json.dumps(STEERING["title"])
    seen = ""
    for text in (
        f"{name} = {value}\n",
        f"[keys]\n{name} = {value}\n",
        f'[keys]\n"list.copy" = {value}\n',
        f"log_level = {value}\ncorpus_path = [{value}, {json.dumps(STEERING['overrides'])}]\n",
        f"{STEERING['erase']} = 1\n",
        f"# {STEERING['erase']}\neditor =",
    ):
        config.write_text(text)
        (lines.shell.cwd / ".env").write_text(
            f"X_{STEERING['8-bit OSC']} = {STEERING['overrides']}\n{SHORT}\n"
        )
        seen += lines(("config",), ("doctor",), ("config", "--json"), ("doctor", "--json"))[1]
    assert seen.count(MARK) > 10


def test_no_line_of_the_log_steers_the_terminal(lines: Lines, tmp_path: Path) -> None:
    log = tmp_path / "xdg" / "state" / "noctuary" / "noctuary.log"
    log.parent.mkdir(parents=True)
    records = [
        {
            "at": "2026-03-01T12:00:00+00:00",
            "level": "error",
            "source": payload,
            "text": payload,
            payload: payload,
        }
        for payload in PAYLOADS.values()
    ]
    log.write_text("".join(json.dumps(record) + "\n" for record in records) + STEERING["erase"])
    _, got = lines(("log", "--limit", "1000"), ("log", "--limit", "1000", "--json"))
    assert got.count(MARK) > len(STEERING)


def test_no_answer_of_a_model_server_steers_the_terminal(lines: Lines) -> None:
    lines.notes.mkdir()
    (lines.notes / "a.md").write_text("owl\n")
    errors = [
        Answer({"error": SHORT}, 500),
        Answer({"error": STEERING["erase"]}, 500),
        Answer(SHORT.encode(), 500),
    ]
    parts = [{"status": SHORT, "completed": part, "total": 9} for part in range(10)] + [
        {"status": "\x1b[2J" + MARK}
    ]
    pulled = "".join(json.dumps(part) + "\n" for part in parts).encode()
    seen = ""
    with in_thread(ScriptedOllama(models={f"{SHORT}:latest": {}, "all-minilm:latest": {}})) as server:
        server.answers["/api/pull"] = lambda asked: Answer(
            pulled if asked.body["model"] == "good" else {"error": SHORT}
        )
        environment = {"OLLAMA_URL": server.url, "EMBEDDINGS_PROVIDER": "ollama", "EMBEDDINGS_MODEL": SHORT}
        said = [
            ("models",),
            ("models", "test"),
            ("models", "pull", "good"),
            ("models", "pull", "bad"),
            ("status",),
        ]
        seen += lines(("index", str(lines.notes)), *said, ("doctor",), environments=(environment,))[1]
        environment["EMBEDDINGS_MODEL"] = "all-minilm"
        for error in errors:
            server.answers["/api/embed"] = lambda asked, error=error: error
            seen += lines(
                ("index", str(lines.notes)), *said, ("inbox",), ("log",), environments=(environment,)
            )[1]
    assert seen.count(MARK) > 100
    assert "\x1b[?25l" in seen, "a bar was drawn"
