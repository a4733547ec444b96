"""`noctuary mcp` as a process: only protocol on its output, whatever is printed, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.mcp_client import HELLO, ByHand
from tests.integration.shell import SECONDS, Shell, on_terminal
from tests.integration.test_cli_ask import in_thread
from tests.integration.test_cli_process import connected, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Server

SEARCH = {"query": "heron", "mode": "keyword"}

PRINTING = """
import ctypes, logging, os, subprocess, sys, warnings

import engine.doors.mcp.arguments as arguments
working = arguments.read

def noisy(parameters, given):
    print("printed \\x1b[2J")
    sys.stdout.write("written")
    sys.stdout.flush()
    sys.__stdout__.write("written under the guard")
    sys.__stdout__.flush()
    os.write(1, b'{"jsonrpc": "2.0", "id": 99, "result": {}}\\n')
    ctypes.CDLL(None).puts(b"said by C")
    ctypes.CDLL(None).fflush(None)
    subprocess.run(["echo", "said by a child"])
    assert sys.stdin.read() == "", "nobody else can take a message"
    return working(parameters, given)

arguments.read = noisy
from tui.__main__ import run
run()
"""


@pytest.fixture
def notes(shell: Shell, tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Birds\n\nThe heron stood in the ford.\n")
    done = shell.run("index", str(folder), "--no-embed")
    assert done.returncode == 0, done.stderr
    return folder


def test_nothing_that_is_printed_reaches_the_protocol(shell: Shell, notes: Path) -> None:
    shell.program = ("-c", PRINTING)
    server = ByHand(shell, "--no-watch")
    server.begin()
    for _ in range(2):
        number = server.call("search", **SEARCH)
        answer = server.answer()
        assert answer["id"] == number
        assert answer["result"]["structuredContent"]["citations"][0]["reference"] == "a.md:L1-L3"
    assert server.end() == (0, "", "")


def test_the_first_requests_are_answered_before_there_is_a_database(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never says a word
        port = silent.getsockname()[1]
        shell.env["NOCTUARY_DATABASE_URL"] = f"postgresql://u@127.0.0.1:{port}/none"
        server = ByHand(shell)
        server.begin()
        server.ask("tools/list")
        assert len(server.answer()["result"]["tools"]) == 13
        server.ask("ping")
        assert server.answer()["result"] == {}
        assert server.end() == (0, "", "")


def test_messages_that_are_none_are_passed_over(shell: Shell, notes: Path) -> None:
    server = ByHand(shell, "--no-watch", errors="surrogateescape")
    server.begin()
    for line in (
        "",
        "nonsense",
        "[]",
        "{}",
        "null",
        '{"jsonrpc": "2.0"}',
        "\udcff\udcfe",
        "\x00",
        "[" * 100_000,
    ):
        server.send(line)
    server.send('"' + "x" * (4 * 1024 * 1024 + 1) + '"')
    number = server.call("search", **SEARCH)
    while (answer := server.answer()).get("id") != number:
        assert "error" in answer
    assert answer["result"]["structuredContent"]["citations"]
    status, out, _ = server.end()
    assert (status, out) == (0, "")


def test_what_was_asked_before_the_input_ended_is_answered(shell: Shell, notes: Path) -> None:
    server = ByHand(shell, "--no-watch")
    first = server.ask("initialize", HELLO)
    server.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
    second, third = server.call("search", **SEARCH), server.ask("tools/list")
    status, out, err = server.end()
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, out.splitlines())}
    assert (status, err, set(answers)) == (0, "", {first, second, third})
    assert answers[second]["structuredContent"]["citations"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(
    shell: Shell, server: Server, database_url: str, notes: Path, number: signal.Signals
) -> None:
    spoken = ByHand(shell)
    spoken.begin()
    spoken.call("search", **SEARCH)
    spoken.answer()
    until(connected(server, database_url, "noctuary mcp"))
    spoken.process.send_signal(number)
    assert spoken.process.wait(timeout=SECONDS) == (-number if number == signal.SIGTERM else 130)
    until(lambda: not connected(server, database_url, "noctuary mcp")())
    _, out, err = spoken.end()
    assert (out, err.strip()) == ("", "")


def test_a_client_that_is_killed_takes_a_running_ask_with_it(
    shell: Shell, server: Server, database_url: str, notes: Path
) -> None:
    with in_thread() as llm:
        shell.env.update(llm.environment("ollama"))
        llm.reply("It ", "stood.", hold_after=1)
        spoken = ByHand(shell)
        spoken.begin()
        spoken.call("ask", question="heron", mode="keyword")
        until(llm.held.is_set)
        spoken.leave("stdout", "stdin")
        assert spoken.process.wait(timeout=SECONDS) == 0
        until(llm.hung_up.is_set)
    until(lambda: not connected(server, database_url, "noctuary mcp")())


def test_whoever_reads_nothing_more_is_gone(shell: Shell, notes: Path) -> None:
    spoken = ByHand(shell, "--no-watch")
    spoken.begin()
    spoken.leave("stdout")
    spoken.ask("tools/list")  # its input stays open
    assert spoken.process.wait(timeout=SECONDS) == 0
    assert spoken.process.stderr is not None
    assert spoken.process.stderr.read() == ""


def test_streams_may_be_files_and_must_be_open(shell: Shell, notes: Path, tmp_path: Path) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    (tmp_path / "in").write_text(json.dumps(asked))  # without an end of line
    with (tmp_path / "in").open() as given, (tmp_path / "out").open("w") as taken:
        process = shell.start("mcp", "--no-watch", stdin=given, stdout=taken)
        assert process.wait(timeout=SECONDS) == 0
    assert json.loads((tmp_path / "out").read_text())["result"]["serverInfo"]["name"] == "noctuary"
    closed = subprocess.run(
        ["sh", "-c", 'exec "$0" -m tui mcp <&-', sys.executable],
        env=shell.env, cwd=shell.cwd, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (closed.returncode, closed.stdout) == (2, "")
    assert closed.stderr.startswith("Server: There is no standard input or output to speak over.")


def test_a_wrong_setting_is_told_before_anything_is_said(shell: Shell) -> None:
    shell.env["RETRIEVAL_DEFAULT_K"] = "many"
    done = shell.run("mcp")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Setting: ")


def test_a_human_at_a_terminal_is_told_what_it_is(shell: Shell) -> None:
    master, slave = os.openpty()
    process = shell.start("mcp", "--no-watch", stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    said = b""
    while b"\n" not in said:
        said += os.read(master, 1024)
    assert b"This speaks MCP, to a program." in said
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=SECONDS) == 130
    os.close(master)
    assert on_terminal(shell, "mcp", "--help")[0] == 0
