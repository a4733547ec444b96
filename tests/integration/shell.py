"""`noctuary` as processes of an installation of its own, by pipe or on a real terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 30.0
"""Nothing here takes two of them; a test fails rather than hangs."""


class Shell:
    """Starts `noctuary` in an installation of its own and leaves no process behind."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        self.env = env
        self.cwd = cwd
        self.program = ("-m", "tui")
        """What Python runs; a test may put a program of its own around the command line."""
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str | bytes, **options: object) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(
            [sys.executable, *self.program, *arguments],
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                "env": self.env,
                "cwd": self.cwd,
                **options,
            },  # type: ignore[call-overload]
        )
        self._started.append(process)
        return process

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=SECONDS)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def stop(self) -> None:
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()


def on_terminal(shell: Shell, *arguments: str | bytes) -> tuple[int, bytes]:
    """Run on a pseudo-terminal; exit status and every byte that the terminal got."""
    master, slave = pty.openpty()
    process = shell.start(*arguments, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    got = b""
    with contextlib.suppress(OSError):  # Linux reports the end of a pseudo-terminal as an error
        while piece := os.read(master, 65536):
            got += piece
    os.close(master)
    return process.wait(timeout=SECONDS), got
