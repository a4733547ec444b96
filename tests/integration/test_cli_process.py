"""The command as a process: signals, closed pipes, real terminals, and faults nobody foresaw."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from engine.doors import exits
from tests.integration.shell import SECONDS, Shell, on_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Server


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# Birds\n\nThe heron stood in the ford.\n")
    return folder


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        select.select([], [], [], 0.02)


def connected(server: Server, database_url: str, application: str) -> Callable[[], bool]:
    """Whether a process of that name uses the test's database."""
    name = database_url.partition("?")[0].rpartition("/")[2]
    query = (
        f"SELECT 1 FROM pg_stat_activity WHERE datname = '{name}' AND application_name LIKE '{application}%'"
    )
    return lambda: bool(server.run(query))


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, exits.INTERRUPTED), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_a_signal_ends_a_worker_in_order_and_without_a_word(
    shell: Shell, server: Server, database_url: str, number: signal.Signals, status: int
) -> None:
    process = shell.start("worker")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["text"] == "Working off the queue. Ctrl+C ends it."
    assert connected(server, database_url, "noctuary worker")()
    process.send_signal(number)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == status
    assert err.strip() == ""
    until(lambda: not connected(server, database_url, "noctuary worker")())


CLOSING = """
import asyncio, sys
from engine.doors import session
session.HASTE_SECONDS = {haste}
def say(word):
    sys.stdout.write(word + "\\n")
    sys.stdout.flush()
async def work():
    say("begun")
    try:
        await asyncio.Event().wait()
    finally:
        say("closing")
        await {closing}
        say("closed")
session.endable(work)
"""


def closing(shell: Shell, **how: object) -> subprocess.Popen[str]:
    """A command that has begun to close, after the first Ctrl+C."""
    shell.program = ("-c", CLOSING.format(**how))
    process = shell.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "closing\n"
    return process


def test_a_ctrl_c_pressed_twice_in_haste_breaks_no_closing_off(shell: Shell) -> None:
    process = closing(shell, haste=60, closing="asyncio.to_thread(sys.stdin.readline)")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=SECONDS)
    assert out == "closed\n"


def test_who_insists_with_ctrl_c_is_let_go(shell: Shell) -> None:
    """A closing that hangs, as one did that was interrupted."""
    process = closing(shell, haste=0.1, closing="asyncio.Event().wait()")
    until(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None)
    assert process.returncode == exits.INTERRUPTED


def test_watch_follows_the_disk_until_it_is_stopped(shell: Shell, notes: Path) -> None:
    process = shell.start("watch", "--path", str(notes))
    assert process.stdout is not None
    wanted, begun = 1, False
    for line in process.stdout:
        news = json.loads(line)
        assert {"at", "level", "source", "text"} <= set(news)
        begun = begun or (news.get("watching"), news.get("working")) == ([str(notes)], True)
        done = news.get("jobs", {}).get("done", 0)
        if done >= wanted == 1:
            wanted = 2
            (notes / "b.md").write_text("A kingfisher.\n")
        elif done >= wanted == 2:
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err.strip()) == (exits.INTERRUPTED, "")
    assert begun
    assert shell.run("search", "kingfisher", "--mode", "keyword").stdout.startswith("b.md:L1-L1\n")


@pytest.mark.parametrize("path", [True, False])
def test_watch_says_at_once_what_it_watches(shell: Shell, notes: Path, path: bool) -> None:
    process = shell.start("watch", "--no-work", "--text", *(["--path", str(notes)] if path else []))
    assert process.stdout is not None
    lines = iter(process.stdout)
    said = next(line for line in lines if "Ctrl+C" in line)
    assert ("No folder of notes yet; one that `noctuary folders add FOLDER`" in said) is not path
    assert (f"Watching {notes}. Jobs are only queued." in said) is path
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)


def test_names_that_are_not_utf8_are_shown_readably_in_any_encoding(shell: Shell, notes: Path) -> None:
    (notes / os.fsdecode(b"b\xffad.md")).write_text("heron")
    (notes / os.fsdecode(b"\xfedir")).mkdir()
    assert shell.run("index", str(notes), "--no-embed").returncode == exits.DONE
    for encoding in ("utf-8", "ascii:strict"):
        shell.env["PYTHONIOENCODING"] = encoding
        shown = shell.run("drift")
        assert "not indexed  b\\xffad.md  cannot be read: its name is not UTF-8" in shown.stdout, shown
        (row,) = json.loads(shell.run("drift", "--json").stdout)["rows"]
        assert row["path"].encode().decode("unicode_escape").encode("latin-1") == b"b\xffad.md"
        for arguments in (
            ("ingest", "--path", os.fsdecode(os.fsencode(notes) + b"/b\xffad.md")),
            ("index", os.fsdecode(os.fsencode(notes) + b"/\xfedir")),
            ("drift", os.fsdecode(b"/nope\xff")),
            ("search", "heron", "--folder", os.fsdecode(b"/nope\xff")),
            (os.fsdecode(b"nope\xff"),),
        ):
            refused = shell.run(*arguments)
            assert (refused.returncode, refused.stdout) == (exits.ERROR, ""), refused
            assert "\\xf" in refused.stderr, refused
            assert "udc" not in refused.stderr
            assert "Fault" not in refused.stderr


def test_a_reader_that_goes_away_is_no_fault(shell: Shell) -> None:
    read, write = os.pipe()
    os.close(read)
    process = shell.start("config", "--example", stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (exits.BROKEN_PIPE, "")


def test_a_fault_is_one_sentence_and_its_details_are_in_a_file(shell: Shell, tmp_path: Path) -> None:
    code = (
        "import click\nfrom engine.doors import cli\n"
        "@click.command('open')\ndef boom(): raise RuntimeError('postgresql://u:hunter2@h/d \\x1b[2J')\n"
        "cli.main(boom)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=shell.env, cwd=shell.cwd, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == exits.ERROR
    assert done.stderr.startswith("Fault: RuntimeError: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr
    (kept,) = (tmp_path / "xdg" / "state" / "noctuary").glob("fault-*.txt")
    assert "Traceback" in kept.read_text()
    assert "hunter2" not in kept.read_text() + done.stderr


def test_hostile_notes_do_not_steer_a_real_terminal(shell: Shell, notes: Path) -> None:
    hostile = "heron \x1b]52;c;aGk=\x07 \x1b[2J \x9b31m \x90 \x7f \u202e \u2066 end\n"
    (notes / "e\x1b[2J\u202evil.md").write_text(hostile)
    (notes / "b\x1bad.md").write_bytes(b"\xff\xfeh\x00")
    assert shell.run("index", str(notes), "--no-embed").returncode == exits.ERROR  # one job failed
    for arguments in (
        ("search", "heron", "--k", "9", "--mode", "keyword", "--explain"),
        ("search", "heron", "--k", "9", "--mode", "keyword", "--json"),
        ("jobs",),
        ("drift",),
        ("inbox",),
        ("log",),
    ):
        status, got = on_terminal(shell, *arguments)
        assert status == exits.DONE, got
        assert b"\xe2\x90\x9b" in got or arguments[0] == "inbox" or b"u001b" in got
        text = got.decode()
        steering = [c for c in text if (c < " " and c not in "\r\n\t") or "\x7f" <= c < "\xa0"]
        assert steering == []
        assert not {"\u202e", "\u2066"} & set(text)


def test_long_work_draws_a_bar_on_a_terminal_and_plain_lines_elsewhere(shell: Shell, notes: Path) -> None:
    for number in range(300):
        (notes / f"{number}.md").write_text(f"Note {number} of the herons.\n\nOne more paragraph.\n")
    status, got = on_terminal(shell, "index", str(notes), "--no-embed")
    assert status == exits.DONE
    assert b"Indexing files" in got
    assert b"301/301" in got
    assert b"Embedding" not in got
    assert b"301 files" in got
    plain = shell.run("index", str(notes), "--no-embed")
    assert "\r" not in plain.stdout + plain.stderr
    assert "\x1b" not in plain.stdout + plain.stderr


def test_a_terminal_without_unicode_shows_escapes_and_no_fault(shell: Shell, notes: Path) -> None:
    (notes / "z.md").write_text("日本の鷺 heron\n")
    shell.env["PYTHONIOENCODING"] = "latin-1"
    assert shell.run("index", str(notes), "--no-embed").returncode == exits.DONE
    found = shell.run("search", "heron", "--k", "5", "--mode", "keyword")
    assert found.returncode == exits.DONE, found.stderr
    assert "\\u65e5" in found.stdout


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('app.help = "y"', "The key 'y' is given to both 'app.help' and 'list.copy'."),
        ('list.copy = "ctrl+nosuchkey"', "'ctrl+nosuchkey', given to 'list.copy', is no key."),
        ('list.cpoy = "y"', "There is no action 'list.cpoy'"),
    ],
)
def test_the_doctor_finds_keys_with_which_the_console_would_not_open(
    shell: Shell, tmp_path: Path, line: str, told: str
) -> None:
    config = tmp_path / "xdg" / "config" / "noctuary" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"[keys]\n{line}\n")
    done = shell.run("doctor", "--json")
    assert done.returncode == exits.ERROR
    (failed,) = [check for check in json.loads(done.stdout)["checks"] if check["state"] == "fail"]
    assert failed["sentence"].startswith(told)
    assert failed["remedy"]


def test_the_console_names_a_folder_that_is_not_there_before_it_takes_the_screen(shell: Shell) -> None:
    status, got = on_terminal(shell, "./nowhere")
    assert status == exits.ERROR
    assert b"does not exist" in got
    assert b"\x1b" not in got
