"""The doctor's command, and what is done to the server that it is called to."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from engine.doors import exits
from tests.integration import database_user
from tests.integration.database_processes import ROOT, first_process
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psutil

    from tests.integration.line import Line


def wait_for(condition: Callable[[], object]) -> None:
    asyncio.run(eventually(condition))


class Doctor:
    """The command in an installation of its own with its embedded server."""

    def __init__(self, line: Line, environment: dict[str, str], data: Path) -> None:
        self._line = line
        self._environment = environment
        self.data = data
        self.folder = data / "postgres"

    def __call__(self, *arguments: str, status: int = exits.DONE) -> list[dict[str, Any]]:
        """What it says of the server."""
        done = self._line("doctor", "--json", *arguments)
        assert done.status == status, done
        checks = done.json["checks"]
        assert (status == exits.ERROR) is any(check["state"] == "fail" for check in checks)
        return [check for check in checks if check["name"] == "server"]

    def well(self) -> None:
        """Without anything to mend, and the note that was indexed is found."""
        for check in self():
            assert (check["state"], check["fixed"]) == ("ok", "")
        assert "log.md:L1-L3" in self._line.search("ford").out

    @contextmanager
    def user(self) -> Iterator[subprocess.Popen[bytes]]:
        """Another process that has the database open."""
        command = [sys.executable, str(database_user.__file__)]
        environment = {**self._environment, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment) as process:
            assert process.stdout
            assert process.stdout.readline() == b"open\n"
            yield process
            process.kill()

    def leave_running(self) -> psutil.Process:
        """A server whose only user was killed."""
        with self.user():
            return first_process(self.data)

    def give(self, file: Path) -> None:
        """A file that a test wrote belongs to the server's account, as all in that folder."""
        owner = self.folder.stat()
        os.chown(file, owner.st_uid, owner.st_gid)

    def content(self) -> dict[Path, tuple[int, bytes]]:
        """Everything in the data folder."""
        return {
            path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in self.data.rglob("*")
        }
