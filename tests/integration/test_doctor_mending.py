"""`noctuary doctor` and `--fix` on what kills, crashes and hands do to the embedded server.

Each state is named with its remedy, mended if that is safe, and then found well; nothing is removed, and no
process but the server is signalled.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from engine.database.embedded.flock import FileLock
from engine.doors import exits
from tests.integration import database_user
from tests.integration.database_processes import ROOT, first_process, modes, servers
from tests.integration.doctoring import Doctor, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.line import Line


@pytest.fixture
def doctor(installation: Line, environment: dict[str, str], installed: Path) -> Doctor:
    """The command where a note is indexed and the server stopped."""
    installation.index()
    return Doctor(installation, environment, installed)


@pytest.mark.parametrize("arguments", [(), ("--fix",)], ids=["", "fix"])
def test_a_server_that_was_killed_recovers_and_that_is_told(
    doctor: Doctor, arguments: tuple[str, ...]
) -> None:
    doctor.leave_running().kill()
    wait_for(lambda: not servers(doctor.data))
    (check,) = doctor(*arguments)
    assert check["state"] == "ok"
    assert check["sentence"].startswith("It was not shut down in order")
    assert check["fixed"] == "It recovered at this start; what was committed is there."
    doctor.well()


@pytest.mark.parametrize("arguments", [(), ("--fix",)], ids=["", "fix"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty or torn"),
        ("{torn}", "empty or torn"),
        ("{stranger}\n/elsewhere\n1\n5432\n.\n\n", "which is another program's (sleep)"),
    ],
    ids=["empty", "truncated", "stranger"],
)
def test_a_file_that_names_no_server_is_set_aside_and_no_stranger_is_touched(
    doctor: Doctor, text: str, said: str, arguments: tuple[str, ...]
) -> None:
    with subprocess.Popen(["sleep", "600"]) as stranger:
        file = doctor.folder / "postmaster.pid"
        file.write_text(text.format(stranger=stranger.pid, torn=str(stranger.pid)[:2]))
        doctor.give(file)
        written = file.read_bytes()
        (check,) = doctor(*arguments)
        assert said in check["sentence"]
        assert "set aside as postmaster.pid.stale" in check["fixed"]
        assert (doctor.folder / "postmaster.pid.stale").read_bytes() == written
        assert stranger.poll() is None
        stranger.kill()
    doctor.well()


def test_a_server_left_running_by_a_killed_program_is_stopped_in_order(doctor: Doctor) -> None:
    server = doctor.leave_running()
    (check,) = doctor()
    assert f"(process {server.pid}) runs, but nobody uses it" in check["sentence"]
    assert "joined" in check["fixed"]
    assert servers(doctor.data) == []
    server = doctor.leave_running()
    (check,) = doctor("--fix")
    assert check["fixed"] == f"Process {server.pid} was stopped in order."
    assert servers(doctor.data) == []
    doctor.well()


def test_a_server_in_use_is_let_be(doctor: Doctor) -> None:
    with doctor.user() as user:
        server = first_process(doctor.data)
        (check,) = doctor("--fix")
        assert check["sentence"] == f"It runs (process {server.pid}) and is in use."
        assert server.is_running()
        assert user.poll() is None
        assert user.stdin
        user.stdin.close()
        assert user.wait(60) == 0
    doctor.well()


@pytest.mark.parametrize("arguments", [(), ("--fix",)], ids=["", "fix"])
def test_a_first_start_that_was_killed_is_put_aside(
    installation: Line, environment: dict[str, str], data: Path, arguments: tuple[str, ...]
) -> None:
    command = [sys.executable, str(database_user.__file__)]
    with subprocess.Popen(command, env={**environment, "PYTHONPATH": str(ROOT)}) as starting:
        wait_for((data / "postgres.new" / "PG_VERSION").exists)
        starting.kill()
    assert not (data / "postgres").exists()
    doctor = Doctor(installation, environment, data)
    (check,) = doctor(*arguments)  # while the initdb that was left may still be writing
    assert "postgres.new half made" in check["sentence"]
    assert "put aside" in check["fixed"]
    assert (data / "postgres.new.stale" / "PG_VERSION").exists()
    assert not (data / "postgres.new").exists()
    assert (data / "postgres" / "PG_VERSION").exists()
    wait_for(lambda: not [each for each in psutil.process_iter() if works_in(each, data)])
    installation.index()
    doctor.well()


def works_in(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and Path(process.cwd()).is_relative_to(folder)
    except psutil.Error:
        return False


def test_a_data_folder_open_to_others_is_closed_and_its_parents_stay(doctor: Doctor) -> None:
    doctor.folder.chmod(0o755)
    before, above = doctor.content(), modes(doctor.folder)
    (check,) = doctor(status=exits.ERROR)
    assert "permissions of the data folder" in check["sentence"]
    assert "--fix" in check["remedy"]
    assert doctor.content() == before
    (check,) = doctor("--fix")
    assert (check["state"], check["left"]) == ("ok", "")
    assert "0700" in check["fixed"]
    assert doctor.folder.stat().st_mode & 0o777 == 0o700
    assert modes(doctor.folder) == above
    doctor.well()


def set_version(folder: Path) -> Callable[[], object]:
    (folder / "PG_VERSION").write_text("17\n")
    return lambda: (folder / "PG_VERSION").write_text("18\n")


def tear_control(folder: Path) -> Callable[[], object]:
    file = folder / "global" / "pg_control"
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    return lambda: file.write_bytes(whole)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(set_version, "is of PostgreSQL 17; this program brings version 18"), (tear_control, "control file")],
)
def test_what_only_a_person_can_mend_is_named_and_nothing_is_changed(
    doctor: Doctor, spoil: Callable[[Path], Callable[[], object]], said: str
) -> None:
    mend = spoil(doctor.folder)
    before = doctor.content()
    for arguments in ((), ("--fix",)):
        (check,) = doctor(*arguments, status=exits.ERROR)
        assert check["state"] == "fail"
        assert said in check["sentence"]
        assert check["remedy"]
        assert bool(check["left"]) is bool(arguments)
        assert doctor.content() == before
    mend()
    doctor.well()


def test_a_server_without_its_socket_is_stopped_when_nobody_uses_it(doctor: Doctor) -> None:
    with doctor.user():
        (doctor.folder / ".s.PGSQL.5432").unlink()
        server = first_process(doctor.data)
        (check,) = doctor("--fix", status=exits.ERROR)
        assert "its socket is gone" in check["sentence"]
        assert check["left"] == "It is in use."
        assert server.is_running()
    (check,) = doctor(status=exits.ERROR)
    assert "--fix" in check["remedy"]
    assert server.is_running()
    (check,) = doctor("--fix")
    assert check["fixed"] == f"Process {server.pid} was stopped in order."
    doctor.well()


def test_a_suspended_server_is_named_at_once_and_not_signalled(doctor: Doctor) -> None:
    server = doctor.leave_running()
    server.suspend()
    (check,) = doctor("--fix", status=exits.ERROR)
    assert "is suspended" in check["sentence"]
    assert server.status() == psutil.STATUS_STOPPED
    server.resume()
    doctor("--fix")
    doctor.well()


def test_another_process_that_starts_or_stops_it_is_not_waited_for_without_end(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.doctor.server.BUSY_SECONDS", 0.2)
    lock = FileLock(doctor.data / "postgres.lock")
    assert lock.try_exclusive()
    before = doctor.content()
    (check,) = doctor("--fix")
    assert check["state"] == "warn"
    assert check["left"]
    assert doctor.content() == before
    lock.release()
    doctor.well()


def test_what_was_mended_and_what_was_left_is_printed(
    doctor: Doctor, installation: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    doctor.folder.chmod(0o755)
    (doctor.folder / "postmaster.pid").touch()
    doctor.give(doctor.folder / "postmaster.pid")
    monkeypatch.setenv("NOCTUARY_EDITOR", "no-such-editor")
    said = installation("doctor", "--fix")
    assert said.status == exits.DONE
    lines = said.out.splitlines()
    assert "warn  editor: no-such-editor is not installed." in lines
    assert "      Left: This is for you to decide." in lines
    assert "ok    server: postmaster.pid is empty or torn, as after a power loss." in lines
    assert "      Fixed: It was set aside as postmaster.pid.stale." in lines
    assert sum(line.startswith("      Fixed: ") for line in lines) == 2
