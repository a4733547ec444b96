"""Real processes that use a database, and a look at the servers they leave behind."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
OPENS_WITHIN = 60


class User:
    """A process that has the database open (see database_user.py)."""

    def __init__(self, process: Process, greeting: str) -> None:
        self.process = process
        self.greeting = greeting

    @classmethod
    async def start(cls, environment: Mapping[str, str], *arguments: str) -> User:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("database_user.py")),
            *arguments,
            stdin=PIPE,
            stdout=PIPE,
            env={**environment, "PYTHONPATH": str(ROOT)},
        )
        user = cls(process, "")
        user.greeting = await user._line()
        return user

    async def ask(self, order: str) -> str:
        assert self.process.stdin
        self.process.stdin.write(f"{order}\n".encode())
        await self.process.stdin.drain()
        return await self._line()

    async def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert await self._line() == "closed"
        assert await self.process.wait() == 0

    async def kill(self) -> None:
        self.process.kill()
        await self.process.wait()

    async def _line(self) -> str:
        assert self.process.stdout
        return (await asyncio.wait_for(self.process.stdout.readline(), OPENS_WITHIN)).decode().strip()


def servers(data: Path) -> list[psutil.Process]:
    """Every live process of a server whose data lies below `data`, its first process first."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name() == "postgres" and Path(process.cwd()).is_relative_to(data):
                found.append(process)
        except psutil.Error:
            continue
    return sorted(found, key=lambda process: process.pid)


def first_process(data: Path) -> psutil.Process:
    return next(process for process in servers(data) if process.ppid() not in {p.pid for p in servers(data)})


def modes(path: Path) -> dict[Path, tuple[int, int, int]]:
    """Permissions and owner of every folder above `path`."""
    found = {}
    for parent in path.parents:
        status = parent.stat()
        found[parent] = (status.st_mode, status.st_uid, status.st_gid)
    return found
