"""The server's process: recognised, started, stopped. No stranger's process is ever signalled."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import psutil

from engine.database.embedded import tuning
from engine.database.embedded.cluster import ENVIRONMENT, reached_as
from engine.database.embedded.flock import FileLock, belong
from engine.database.embedded.socketpath import SOCKET

if TYPE_CHECKING:
    from engine.database.embedded.account import Account

_LOG_LIMIT = 2 * 1024 * 1024
_LOCK_FILES = ("postmaster.pid", f"{SOCKET}.lock")
_LONGEST_NUMBER = 10


@dataclass(frozen=True, slots=True)
class PidFile:
    """A lock file of the server: `pid` is None where it is empty or torn, `program` the name of the living
    process with that number.
    """

    path: Path
    pid: int | None
    program: str


# A server outlives the objects that started it; kept here, Popen does not complain of that, and a
# server that ended can be reaped.
_children: dict[Path, subprocess.Popen[bytes]] = {}


def find(folder: Path) -> int | None:
    """The pid of the live server of `folder`, or None.

    `postmaster.pid` is a hint only: it may be empty, torn, stale, or name a process that took over
    the number. The process has to be a postgres whose working directory is this folder.
    """
    try:
        pid = int((folder / _LOCK_FILES[0]).read_bytes().split(b"\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return None
    return pid if is_server(pid, folder) else None


def is_server(pid: int, folder: Path) -> bool:
    """Whether `pid` is a live postgres that serves `folder`."""
    try:
        process = psutil.Process(pid)
        if process.name() != "postgres" or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return Path(process.cwd()).samefile(folder)
    except (psutil.Error, OSError, ValueError, OverflowError):
        return False


def find_anywhere(folder: Path) -> int | None:
    """As `find`, for when the file tells nothing: looked for among all processes of the system."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, IndexError):
            # The others of a server call themselves "postgres: what they are for".
            if is_server(process.pid, folder) and not process.cmdline()[0].startswith("postgres: "):
                return process.pid
    return None


def is_suspended(pid: int) -> bool:
    """Whether somebody stopped the process `pid` without ending it: it answers when it is told to go on."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.Error:
        return False


def pid_files(folder: Path) -> list[PidFile]:
    """What the server's lock files say, those that are there."""
    found = []
    for name in _LOCK_FILES:
        with contextlib.suppress(FileNotFoundError):
            number, newline, _ = (folder / name).read_bytes().partition(b"\n")
            whole = newline and number.isdigit() and len(number) <= _LONGEST_NUMBER
            pid = int(number) if whole else None
            found.append(PidFile(folder / name, pid, _name_of(pid)))
    return found


def _name_of(pid: int | None) -> str:
    try:
        process = psutil.Process(pid) if pid else None
        return process.name() if process and process.status() != psutil.STATUS_ZOMBIE else ""
    except (psutil.Error, OverflowError):
        return ""


def set_aside(folder: Path) -> None:
    """Rename lock files that no live server owns, so that they do not keep a new one from starting.

    PostgreSQL's own interlock, the shared memory keyed by the folder, stays in force.
    """
    for name in _LOCK_FILES:
        with contextlib.suppress(FileNotFoundError):
            (folder / name).replace(folder / f"{name}.stale")


def start(
    folder: Path, programs: Path, account: Account, log: Path, serving: FileLock
) -> subprocess.Popen[bytes]:
    """Start the server of `folder`; it is not ready yet.

    It and all its children inherit `serving`, so that lock is held as long as any of them lives.

    Raises:
        OSError: its program cannot be executed, or the log cannot be written.
    """
    with _log_file(log) as output:
        process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
            [programs / "postgres", "-D", reached_as(folder), *tuning.arguments()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            env=ENVIRONMENT,
            start_new_session=True,  # the terminal's ctrl+c is for the console
            pass_fds=[serving.fileno()],
            **account.identity(),
        )
    _children[folder] = process
    return process


def interrupt(folder: Path) -> None:
    """Ask the server to shut down fast: running transactions roll back, nothing committed is lost."""
    pid = find(folder)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)


def last_words(log: Path, since: int) -> str:
    """The reasons the server gave in its log after the byte `since`, newest last."""
    try:
        with log.open("rb") as file:
            file.seek(since)
            lines = file.read(65536).decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    telling = [line for line in lines if any(f"{level}:  " in line for level in ("FATAL", "PANIC", "ERROR"))]
    return " ".join(line.split(":  ", 1)[1] for line in telling[-2:]) or " ".join(lines[-1:])


def log_size(log: Path) -> int:
    """Bytes in the log now; 0 when it does not exist."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def rotate(log: Path) -> None:
    """Keep one old log, so that logs stay within a few megabytes."""
    if log_size(log) > _LOG_LIMIT:
        log.replace(log.with_name(log.name + ".1"))


def _log_file(log: Path) -> BinaryIO:
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    belong(file, log.parent)
    return os.fdopen(file, "ab")


def reaped(folder: Path) -> bool:
    """Whether the server of `folder`, if this process started it, has ended and left no zombie."""
    child = _children.get(folder)
    if child is not None and child.poll() is not None:
        del _children[folder]
    return folder not in _children
