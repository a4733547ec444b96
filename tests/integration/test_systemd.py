"""`noctuary service`: the units are what systemd reads, and systemctl is asked for the right things.

No user manager runs where tests do, so `systemctl` is a program of the test's that writes down what it was
asked; the unit files are judged by systemd's own `systemd-analyze`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import systemd
from engine.doors import cli, exits
from engine.errors import ServiceError

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  *show*) printf 'ActiveState=active\\nSubState=running\\nUnitFileState=enabled\\n';;
esac
if [ -n "$REFUSE" ]; then case "$*" in *"$REFUSE"*) echo "Failed to connect to bus: No medium found" >&2; exit 1;; esac; fi
"""


@dataclass
class Machine:
    """A home whose systemctl remembers."""

    home: Path

    @property
    def units(self) -> Path:
        return self.home / "config" / "systemd" / "user"

    def calls(self) -> list[str]:
        file = self.home / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "systemctl"
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    for name, folder in (("CONFIG", "config"), ("DATA", "data 1"), ("STATE", "state")):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / folder))
    monkeypatch.chdir(tmp_path)
    return Machine(tmp_path)


def test_the_unit_is_one_that_systemd_reads(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", 'postgresql://me:50%"x$y\\z@db/notes')
    assert cli.run(["service", "install", "watch", "worker"]) == exits.DONE
    watch, worker = machine.units / "noctuary-watch.service", machine.units / "noctuary-worker.service"
    assert watch.stat().st_mode & 0o777 == 0o600, "an address holds a password"
    text = watch.read_text()
    assert f'ExecStart="{sys.executable}" "-m" "tui" "watch"' in text
    assert f'Environment="XDG_DATA_HOME={machine.home / "data 1"}"' in text
    assert 'Environment="DATABASE_URL=postgresql://me:50%%\\"x$y\\\\z@db/notes"' in text
    assert "WorkingDirectory" not in text
    assert machine.calls() == [
        "--user --no-pager show --property=Version",
        "--user --no-pager daemon-reload",
        "--user --no-pager enable --now noctuary-watch.service noctuary-worker.service",
        "--user --no-pager restart noctuary-watch.service noctuary-worker.service",
    ]
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed: the unit was not judged by systemd itself")
    judged = subprocess.run(
        [analyze, "--user", "--man=no", "verify", str(watch), str(worker)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(machine.home)},
    )
    assert [line for line in judged.stderr.splitlines() if "noctuary" in line] == []


def test_a_broken_unit_would_not_pass_systemds_judgement(machine: Machine) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd-analyze is not installed")
    assert cli.run(["service", "install"]) == exits.DONE
    unit = machine.units / "noctuary-watch.service"
    unit.write_text(unit.read_text().replace("ExecStart=", "ExecStrt="))
    judged = subprocess.run(
        [analyze, "--user", "--man=no", "verify", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(machine.home)},
    )
    assert "ExecStrt" in judged.stderr


def test_settings_of_a_dotenv_are_read_by_the_service_too(machine: Machine) -> None:
    (machine.home / ".env").write_text("POLL_INTERVAL=9\nNOCTUARY_LOG_LEVEL=debug\n")
    assert cli.run(["service", "install"]) == exits.DONE
    assert f"WorkingDirectory={machine.home}\n" in (machine.units / "noctuary-watch.service").read_text()


def test_status_and_removal(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["service", "status"]) == exits.FOUND_NOTHING
    assert capsys.readouterr().out.count("not installed") == 2
    assert cli.run(["service", "install", "--json"]) == exits.DONE
    unit = machine.units / "noctuary-watch.service"
    assert json.loads(capsys.readouterr().out) == {"installed": [str(unit)]}
    assert cli.run(["service", "status"]) == exits.DONE
    shown = capsys.readouterr().out
    assert "active (running), enabled" in shown
    assert "not installed" in shown
    assert cli.run(["service", "remove"]) == exits.DONE
    assert not unit.exists()
    assert machine.calls()[-2:] == [
        "--user --no-pager disable --now noctuary-watch.service",
        "--user --no-pager daemon-reload",
    ]
    capsys.readouterr()
    assert cli.run(["service", "remove"]) == exits.DONE
    assert capsys.readouterr().out == "No service is installed.\n"


def test_a_unit_that_is_somebody_elses_is_left_alone(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.units.mkdir(parents=True)
    unit = machine.units / "noctuary-watch.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    for command in ("install", "remove"):
        assert cli.run(["service", command]) == exits.ERROR
        assert "was not written by Noctuary" in capsys.readouterr().err
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert machine.calls() == []


def test_what_systemctl_refuses_is_said_in_its_words(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFUSE", "enable")
    assert cli.run(["service", "install"]) == exits.ERROR
    said = capsys.readouterr().err
    assert "systemctl enable failed: Failed to connect to bus: No medium found." in said
    assert systemd.LINGER in said


def test_without_systemd_that_is_the_answer(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(machine.home))
    for command in ("install", "status"):
        assert cli.run(["service", command]) == exits.ERROR
        assert "There is no systemd here" in capsys.readouterr().err
    assert not machine.units.exists()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a\nExecStart=/bin/evil", "control character"),
        ("a\x1b[2J", "control character"),
        ("a\x7f", "control character"),
        ("a\udcff", r"a\\xff cannot stand in a unit: it is not UTF-8"),
    ],
)
def test_what_systemd_would_not_read_does_not_get_into_a_unit(value: str, why: str) -> None:
    with pytest.raises(ServiceError, match=why):
        systemd.text_of(systemd.UNITS["watch"], ("noctuary",), {"XDG_DATA_HOME": value})
    with pytest.raises(ServiceError, match=why):
        systemd.text_of(systemd.UNITS["watch"], ("noctuary",), {}, Path(value))


def test_without_a_session_nothing_is_written(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REFUSE", "show")
    assert cli.run(["service", "install", "watch", "worker"]) == exits.ERROR
    assert "Failed to connect to bus" in capsys.readouterr().err
    assert not machine.units.exists()


def test_without_a_session_the_units_are_told_and_removed_all_the_same(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["service", "install"]) == exits.DONE
    link = machine.units / "default.target.wants" / "noctuary-watch.service"
    link.parent.mkdir()
    link.symlink_to(machine.units / "noctuary-watch.service")
    monkeypatch.setenv("REFUSE", "user")
    capsys.readouterr()
    assert cli.run(["service", "status"]) == exits.DONE
    assert "systemd does not answer" in capsys.readouterr().out
    assert cli.run(["service", "remove"]) == exits.ERROR
    assert "removed, but systemd was not told" in capsys.readouterr().err
    assert [file for file in machine.units.rglob("*") if not file.is_dir()] == []
    assert cli.run(["service", "remove"]) == exits.DONE
