"""The log on standard output: one record a line, whoever writes and however slowly it is read."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from engine.activity import ActivityLog, LogRecord
from engine.doors import exits, jsonlog
from engine.doors.jsonlog import Lines
from tests.integration.shell import SECONDS
from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.shell import Shell

MARKER = "quetzalcoatlus"


@pytest.fixture
def notes(shell: Shell) -> Path:
    folder = shell.cwd / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("A heron.\n")
    return folder


def record(text: str) -> LogRecord:
    return LogRecord(datetime(2026, 1, 2, tzinfo=UTC), "info", "tests", text)


def test_a_line_is_whole_whoever_writes_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(jsonlog._as_json, lambda: None)
    threads = [
        threading.Thread(target=lambda: [lines.take(record("x" * 500)) for _ in range(100)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines.close()
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (
        told
        == [{"at": "2026-01-02T00:00:00+00:00", "level": "info", "source": "tests", "text": "x" * 500}] * 800
    )


async def test_who_reads_slowly_holds_nobody_up_and_is_told_what_was_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jsonlog, "HELD", 10)
    gate, told = threading.Event(), []

    def write(line: LogRecord) -> None:
        gate.wait(SECONDS)
        told.append(line.text)

    lines = Lines(write, lambda: None)
    for number in range(100):
        lines.take(record(str(number)))
    gate.set()
    await eventually(lambda: any("lines were left out" in text for text in told))
    lines.close()
    left_out = next(text for text in told if "left out" in text)
    assert len(told) - 1 + int(left_out.split(" ")[0]) == 100


def test_who_has_stopped_reading_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonlog, "LAST_SECONDS", 0.05)
    gate = threading.Event()
    lines = Lines(lambda _: gate.wait(SECONDS) and None, lambda: None)
    lines.take(record("held"))
    lines.close()
    gate.set()


def test_a_fault_is_one_line_with_where_it_came_from(tmp_path: Path) -> None:
    log, heard = ActivityLog(), []
    log.open(tmp_path, "info")
    try:
        log.listen(heard.append)
        fault = RuntimeError("of\ntwo lines")
        logging.getLogger("noctuary.tests").error("it fell", exc_info=fault)
    finally:
        log.shut()
    (line,) = heard
    assert line.as_object()["trace"].endswith("RuntimeError: of\ntwo lines")
    assert "\n" not in json.dumps(line.as_object(), default=str)


@pytest.mark.parametrize("command", ["watch", "worker"])
def test_it_ends_when_its_reader_goes_away(shell: Shell, notes: Path, command: str) -> None:
    process = shell.start(command)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    shell.run("index", str(notes), "--no-embed")  # makes it say something
    process.wait(SECONDS)
    assert process.returncode == exits.BROKEN_PIPE
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_no_text_of_a_note_or_a_query_is_in_it(shell: Shell, notes: Path, tmp_path: Path) -> None:
    (notes / "long.md").write_text(f"{MARKER} " * 200)
    (notes / "bad.md").write_bytes(f"{MARKER}".encode("utf-16"))
    process = shell.start("watch", "--path", str(notes))
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        if json.loads(line).get("jobs", {}).get("failed"):
            break
    found = shell.run("search", MARKER, "--mode", "keyword")
    assert MARKER in found.stdout
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=SECONDS)
    logs = [path for path in tmp_path.rglob("noctuary.log*") if path.is_file()]
    assert logs
    for text in (*told, rest, err, *(path.read_text() for path in logs)):
        assert MARKER not in text


def test_json_and_text_exclude_each_other(shell: Shell) -> None:
    said = shell.run("watch", "--json", "--text")
    assert (said.returncode, said.stdout) == (exits.ERROR, "")
    assert "exclude each other" in said.stderr
    assert os.linesep not in said.stderr.strip()
