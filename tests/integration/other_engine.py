"""An engine in a process of its own, to be killed: what another SSH session or a crash looks like.

Run as a script it opens an engine on the settings of its environment, starts the services named on
its command line and runs until its standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
OPENS_WITHIN = 60


class OtherEngine:
    """The process as a test holds it."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.pid = process.pid

    @classmethod
    async def start(cls, environment: Mapping[str, str], *services: str) -> OtherEngine:
        """Start it with some of `watch`, `work` and `embed`; returns when they run."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            *services,
            stdin=PIPE,
            stdout=PIPE,
            env={**environment, "PYTHONPATH": str(ROOT)},
        )
        assert process.stdout
        async with asyncio.timeout(OPENS_WITHIN):
            assert (await process.stdout.readline()).strip() == b"started"
        return cls(process)

    async def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        await self._process.wait()

    async def close(self) -> None:
        """Let it end by itself."""
        await self._process.communicate(b"")
        assert self._process.returncode == 0


async def main() -> None:
    from engine import Engine
    from engine.settings import Settings

    engine = await Engine.open(Settings.load(cwd=Path("/")), application="other")
    chosen = {name: name in sys.argv[1:] for name in ("watch", "work", "embed")}
    await engine.start(**chosen)
    sys.stdout.write("started\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(main())
