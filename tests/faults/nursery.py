"""Engines in processes of their own that start in a moment, so that a hundred can be killed in one test.

Run as a script this is the mother: it imports everything and loads the model once, and forks for each order
(a line of JSON) an engine that runs until SIGTERM ends it or SIGKILL kills it.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parents[2]
WITHIN = 60
TASK = "other task"
"""The name of such a process among the server's sessions."""
POISON = b"this note kills who reads it"


class Nursery:
    """The mother as a test holds her."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._living: set[int] = set()

    @classmethod
    async def start(cls, *prefix: str, begun: Callable[[int], object] = int) -> Nursery:
        """Start her; `prefix` is a command that runs her otherwise, as `unshare` does, and `begun` takes its pid."""
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "TOKENIZERS_PARALLELISM": "false"}
        process = await asyncio.create_subprocess_exec(
            *prefix, sys.executable, __file__, stdin=PIPE, stdout=PIPE, env=environment
        )
        mother = cls(process)
        begun(process.pid)
        assert await mother._line() == "ready"
        return mother

    async def spawn(
        self,
        environment: Mapping[str, str],
        *services: str,
        user: int | None = None,
        folder: Path | None = None,
        task: str = "",
    ) -> int:
        """An engine with some of `watch`, `work` and `embed`; its pid, once they run. `folder` is added first.

        With `task`, as `module:function`, it runs that coroutine over its database in their place.
        """
        order = {
            "environment": dict(environment),
            "services": services,
            "user": user,
            "folder": str(folder) if folder else None,
            "task": task,
        }
        word, pid = (await self._ask(order)).split(" ", 1)
        assert word == "started", pid
        self._living.add(int(pid))
        return int(pid)

    async def kill(self, pid: int) -> None:
        """End an engine as a power cut would."""
        os.kill(pid, signal.SIGKILL)
        assert await self.ended(pid) == -signal.SIGKILL

    async def stop(self, pid: int) -> None:
        """Let an engine end by itself."""
        os.kill(pid, signal.SIGTERM)
        assert await self.ended(pid) == 0

    async def ended(self, pid: int) -> int:
        """Wait for an engine's end; its exit code, negative for a signal."""
        self._living.discard(pid)
        return int(await self._ask({"wait": pid}))

    async def close(self) -> None:
        """Kill those that live, and end the mother."""
        for pid in tuple(self._living):
            await self.kill(pid)
        await self._process.communicate(b"")
        assert self._process.returncode == 0

    async def _ask(self, order: Mapping[str, Any]) -> str:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        await self._process.stdin.drain()
        return await self._line()

    async def _line(self) -> str:
        assert self._process.stdout
        async with asyncio.timeout(WITHIN):
            return (await self._process.stdout.readline()).decode().strip()


def say(text: str) -> None:
    os.write(1, text.encode() + b"\n")


def bear(order: Mapping[str, Any]) -> None:
    """Fork an engine; the mother goes on when it has told how it started."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        code = 1
        try:
            be(order)
            asyncio.run(live(order, writing))
            code = 0
        except Exception as error:  # noqa: BLE001 - told to the test
            with contextlib.suppress(OSError):
                os.write(writing, f"failed {error!r}".encode())
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as told:
        say(told.read() or "failed without a word")


def be(order: Mapping[str, Any]) -> None:
    """Take on the environment and the user of the order."""
    os.environ.clear()
    os.environ.update(order["environment"], TOKENIZERS_PARALLELISM="false")
    if order["user"] is not None:
        os.setgroups([])
        os.setgid(order["user"])
        os.setuid(order["user"])


async def live(order: Mapping[str, Any], told: int) -> None:
    from engine import Engine
    from engine.settings import Settings

    if order["task"]:
        await work_at(order["task"], Settings.load(cwd=Path("/")), told)
        return
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    engine = await Engine.open(Settings.load(cwd=Path("/")), application="other")
    if order["folder"]:
        await engine.notes.add_folder(Path(order["folder"]))
    await engine.start(**{name: name in order["services"] for name in ("watch", "work", "embed")})
    os.write(told, f"started {os.getpid()}".encode())
    os.close(told)
    await stop.wait()
    await engine.close()


async def work_at(task: str, settings: Any, told: int) -> None:
    """Open the database, tell of it, and do the task until death."""
    import importlib

    from engine.database import Database

    module, name = task.split(":")
    function = getattr(importlib.import_module(module), name)
    database = await Database.open(settings, application=TASK)
    os.write(told, f"started {os.getpid()}".encode())
    os.close(told)
    await function(database, settings)


def mortal(read: Any) -> Any:
    """A reading that the kernel answers with the reader's death, as when memory runs out over one note."""

    def reading(path: Path, **options: Any) -> Any:
        found = read(path, **options)
        if found is not None and POISON in found.raw:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return reading


def prepare() -> None:
    """All that a fresh engine takes its time for, done once."""
    import importlib

    import engine
    from engine.models.embedding.bundled import BundledEmbedder
    from engine.notes import disk

    engine._load()
    for name in ("database.opening", "notes.index", "notes.upkeep", "notes.prepare"):
        importlib.import_module(f"engine.{name}")
    for codec in ("ascii", "latin_1", "idna"):  # a child that is another user may not reach their modules
        codecs.lookup(codec)
    first = BundledEmbedder()

    async def load() -> None:
        await first.passages(["one"])
        await first.close()

    asyncio.run(load())
    real = BundledEmbedder.__init__

    def loaded(self: BundledEmbedder, **options: Any) -> None:
        real(self, **options)
        self._session = first._session  # of one thread, its caller's: a fork has all of it

    BundledEmbedder.__init__ = loaded  # type: ignore[method-assign]
    disk.read = mortal(disk.read)


def main(lines: Sequence[str]) -> None:
    prepare()
    say("ready")
    for line in lines:
        order = json.loads(line)
        if "wait" in order:
            say(str(os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])))
        else:
            bear(order)


if __name__ == "__main__":
    main(sys.stdin)  # type: ignore[arg-type]
