"""systemd user units for `noctuary watch` and `worker`: written, started, asked about and removed.

Units of the user, not of the system: no rights are needed, and the services see the user's folders.
The syntax is that of systemd.unit(5), systemd.service(5) and systemd.exec(5).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ServiceError
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.settings import Settings

MARK = "# Written by `noctuary service install`; `noctuary service remove` takes it away."
PATIENCE = 30
"""Seconds that one call of systemctl may take."""

XDG = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")

_VARIABLE = re.compile(r"environment \((\w+)\)")
"""How the settings name a variable as the source of a value."""

TARGET = "default.target"
"""What starts the units: the user's session."""

LINGER = "loginctl enable-linger"
"""What lets the services of a user run while nobody is logged in."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A service that can be installed: its command's arguments and what it is for."""

    name: str
    arguments: tuple[str, ...]
    description: str

    @property
    def file(self) -> str:
        """The unit's name as systemd knows it."""
        return f"noctuary-{self.name}.service"


UNITS = {
    "watch": Unit("watch", ("watch",), "Noctuary: keeps the index true to the folders of notes"),
    "worker": Unit("worker", ("worker",), "Noctuary: works off the queue"),
}


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit as systemd sees it: `active` and `enabled` in its own words."""

    unit: str
    path: Path
    installed: bool
    active: str
    enabled: str


def folder(env: Mapping[str, str]) -> Path:
    """Where systemd looks for a user's units."""
    base = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base, "systemd", "user")


def program() -> tuple[str, ...]:
    """The command that starts this very installation."""
    script = Path(sys.argv[0])
    if script.name == "noctuary" and os.access(script, os.X_OK):
        return (str(script.absolute()),)
    return (sys.executable, "-m", "tui")


def text_of(
    unit: Unit, command: Sequence[str], environment: Mapping[str, str], working: Path | None = None
) -> str:
    """The unit file. What the environment sets is written down: a service has another one."""
    lines = [f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(environment.items())]
    if working is not None:
        lines.append(f"WorkingDirectory={_escaped(str(working))}")
    start = " ".join(_quoted(word).replace("$", "$$") for word in (*command, *unit.arguments))
    return "\n".join(
        [
            MARK,
            "[Unit]",
            f"Description={unit.description}",
            "",
            "[Service]",
            f"ExecStart={start}",
            *lines,
            "Restart=on-failure",
            "RestartSec=5",
            "Nice=10",
            "",
            "[Install]",
            f"WantedBy={TARGET}",
            "",
        ]
    )


def _quoted(word: str) -> str:
    """A word as systemd reads it: quoted, with its escapes and specifiers escaped."""
    return '"' + _escaped(word).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _escaped(word: str) -> str:
    if any(character < " " or character == "\x7f" for character in word):
        raise ServiceError(f"{word!r} cannot stand in a unit: it holds a control character.")
    if spelt(word) != word:
        raise ServiceError(f"{spelt(word)} cannot stand in a unit: it is not UTF-8.")
    return word.replace("%", "%%")


def given(settings: Settings, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that a service needs in order to be this installation: XDG folders and settings."""
    named = [match[1] for match in map(_VARIABLE.fullmatch, settings.sources.values()) if match]
    return {name: env[name] for name in (*XDG, *named) if env.get(name)}


def working_folder(settings: Settings, here: Path) -> Path | None:
    """The folder a service must run in: that of a `.env` which some setting came from."""
    dotenv = f"{here / '.env'}:"
    return here if any(source.startswith(dotenv) for source in settings.sources.values()) else None


def install(units: Sequence[Unit], settings: Settings, env: Mapping[str, str]) -> list[Path]:
    """Write the units, and start them now and at each login. Returns the files.

    Raises:
        ServiceError: systemd is not there or refuses, or a file of that name is somebody else's.
    """
    for unit in units:
        _check_ours(folder(env) / unit.file)
    _run("show", "--property=Version")  # nothing is written where nobody would start it
    written = []
    for unit in units:
        path = folder(env) / unit.file
        text = text_of(unit, program(), given(settings, env), working_folder(settings, Path.cwd()))
        written.append(_write(path, text))
    _run("daemon-reload")
    _run("enable", "--now", *[unit.file for unit in units])
    # What ran before runs the new file now.
    _run("restart", *[unit.file for unit in units])
    return written


def _check_ours(path: Path) -> None:
    if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise ServiceError(f"{path} was not written by Noctuary.", remedy="Move it away first.")


def _write(path: Path, text: str) -> Path:
    """The file whole or not at all, and for the user alone: an address of a database holds a password."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as opened:  # noqa: PTH123
            opened.write(text)
        return new.replace(path)
    except OSError as error:
        raise ServiceError(
            f"{path} cannot be written: {error.strerror}.", remedy="Make room, or free the path."
        ) from error


def remove(env: Mapping[str, str]) -> list[Path]:
    """Stop every unit of ours and remove its file. Returns the files removed.

    Raises:
        ServiceError: systemd is not there, or could not be told; then the files are removed all the same.
    """
    there = [unit for unit in UNITS.values() if (folder(env) / unit.file).exists()]
    removed = []
    untold = ""
    for unit in there:
        path = folder(env) / unit.file
        _check_ours(path)
        try:
            _run("disable", "--now", unit.file)
        except ServiceError as error:
            untold = error.message
            (path.parent / f"{TARGET}.wants" / unit.file).unlink(missing_ok=True)
        path.unlink()
        removed.append(path)
    if untold:
        files = " and ".join(map(str, removed))
        raise ServiceError(
            f"{files}: removed, but systemd was not told. {untold}",
            remedy="It forgets them by the next login.",
        )
    if removed:
        _run("daemon-reload")
    return removed


def states(env: Mapping[str, str]) -> list[UnitState]:
    """Each unit, installed or not, and what systemd says of it.

    Raises:
        ServiceError: systemd is not there or does not answer.
    """
    found = []
    for unit in UNITS.values():
        path = folder(env) / unit.file
        values = _told(unit)
        active = values.get("ActiveState", "state unknown: systemd does not answer")
        detail = values.get("SubState", "")
        shown = active if detail in {"", active, "dead"} else f"{active} ({detail})"
        found.append(UnitState(unit.file, path, path.exists(), shown, values.get("UnitFileState", "")))
    return found


def _told(unit: Unit) -> dict[str, str]:
    """What systemd says of a unit; nothing where it does not answer, as without a session of its own."""
    _systemctl()
    try:
        told = _run("show", "--property=ActiveState,SubState,UnitFileState", unit.file)
    except ServiceError:
        return {}
    return dict(line.partition("=")[::2] for line in told.splitlines())


def _systemctl() -> str:
    path = shutil.which("systemctl")
    if path is None:
        raise ServiceError(
            "There is no systemd here (systemctl was not found).",
            remedy="Start `noctuary watch` with what this system has: cron's @reboot, launchd, runit.",
        )
    return path


def _run(*arguments: str) -> str:
    """What systemctl prints."""
    command = [_systemctl(), "--user", "--no-pager", *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - its arguments are ours
            command, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ServiceError(f"systemctl {arguments[0]} did not end within {PATIENCE} s.") from error
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip()
        with suppress(IndexError):
            reason = reason.splitlines()[-1]
        raise ServiceError(
            f"systemctl {arguments[0]} failed: {reason.rstrip('.') or f'status {done.returncode}'}.",
            remedy=f"Without a login session of the user, run `{LINGER}` first.",
        )
    return done.stdout
