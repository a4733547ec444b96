"""A real terminal for the tests: the program on a pty, and every byte it writes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PROGRAM = (sys.executable, "-c", "from tui.main import main; main()")


class Terminal:
    """The console on a pty. Use it as a context: the program is ended at the end."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *arguments: str,
        cwd: Path,
        size: tuple[int, int] = (80, 24),
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.output = b""
        self._status: int | None = None
        paths = os.pathsep.join(path for path in sys.path if path)
        environment = {"TERM": "xterm-256color", "PYTHONPATH": paths, **environment}
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore them
            os.chdir(cwd)
            os.execve(program[0], [*program, *arguments], environment)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        if self._fd >= 0:
            os.close(self._fd)

    def _drain(self, seconds: float) -> None:
        """Read what it writes in so long, so that it never waits for us."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and select.select([self._fd], [], [], left)[0]:
            try:
                self.output += os.read(self._fd, 65536)
            except OSError:  # the program ended
                break

    def until(self, text: str, seconds: float = 30) -> None:
        """Read until the text was written."""
        end = time.monotonic() + seconds
        seen = b""
        while text.encode() not in seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                raise AssertionError(f"{text!r} was not written in {seconds} s: {seen[-2000:]!r}")
            data = os.read(self._fd, 65536)
            seen += data
            self.output += data

    def silent(self, seconds: float) -> bool:
        """Whether it writes nothing for so long; what it writes instead is read."""
        if not select.select([self._fd], [], [], seconds)[0]:
            return True
        self.output += os.read(self._fd, 65536)
        return False

    def rest(self, seconds: float = 0.15) -> None:
        """Read until it has written nothing for so long."""
        while not self.silent(seconds):
            pass

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def hang_up(self) -> None:
        """The line drops: the terminal is gone, and the kernel says so with SIGHUP."""
        os.close(self._fd)
        self._fd = -1

    def ended(self) -> tuple[int] | None:
        """The exit status (minus the number of the signal that ended it), None while it runs."""
        if self._fd >= 0:
            self._drain(0.05)
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = os.waitstatus_to_exitcode(status) if pid else None
            if pid and self._fd >= 0:
                self._drain(1)  # its last words, which may have come since
        return None if self._status is None else (self._status,)

    def press(self, keys: str, then: str = "") -> None:
        """Press keys, and read until the text `then` was written."""
        os.write(self._fd, keys.encode())
        if then:
            self.until(then)

    def flood(self, keys: str) -> None:
        """Send more than the terminal holds at once, reading what it writes meanwhile."""
        left = keys.encode()
        os.set_blocking(self._fd, False)
        while left:
            select.select([], [self._fd], [], 0.05)
            try:
                left = left[os.write(self._fd, left[:1024]) :]
            except BlockingIOError:
                self._drain(0.01)
        os.set_blocking(self._fd, True)
