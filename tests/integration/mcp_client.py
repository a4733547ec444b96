"""`noctuary mcp` as a process, driven by the SDK's own client or by hand, line by line."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.integration.shell import SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.shell import Shell

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}


@asynccontextmanager
async def client(
    shell: Shell,
    *arguments: str,
    mode: str = "auto",
    complaints: Path | None = None,
    complains: str = "",
    **more: str,
) -> AsyncIterator[Client]:
    """The SDK's client on a server of its own, which says nothing on standard error but what `complains`."""
    complaints = complaints or shell.cwd / "complaints"
    server = StdioServerParameters(
        command=sys.executable,
        args=[*shell.program, "mcp", *arguments],
        env={**shell.env, **more},
        cwd=shell.cwd,
    )
    with complaints.open("w") as told:
        async with Client(
            stdio_client(server, errlog=told), mode=mode, read_timeout_seconds=SECONDS
        ) as opened:
            yield opened
    said = complaints.read_text()
    assert complains in said if complains else said == ""


class ByHand:
    """A server spoken to in lines of our own making."""

    def __init__(self, shell: Shell, *arguments: str, **options: Any) -> None:
        self.process = shell.start("mcp", *arguments, stdin=subprocess.PIPE, **options)
        self._last = 0

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request; its number."""
        self._last += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params or {}}))
        return self._last

    def answer(self) -> dict[str, Any]:
        """The next message, which has to be one."""
        assert self.process.stdout is not None
        message = json.loads(self.process.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        return message

    def begin(self) -> None:
        self.ask("initialize", HELLO)
        assert self.answer()["result"]["serverInfo"]["name"] == "noctuary"
        self.send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def call(self, tool: str, **arguments: Any) -> int:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def leave(self, *ends: str) -> None:
        """Close our side of these of its streams, as they close when a client dies."""
        for name in ends:
            getattr(self.process, name).close()
            setattr(self.process, name, None)

    def end(self) -> tuple[int, str, str]:
        """Close its input; its exit status and what it still said."""
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err
