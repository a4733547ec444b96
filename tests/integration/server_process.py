"""`noctuary serve` as a process, and its log as it comes."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from tests.integration.shell import Shell

SECONDS = 30.0


class Serving:
    """A running server. `url` is where; use it as a context, at whose end it is told to end."""

    def __init__(self, shell: Shell, *arguments: str, port: int = 0) -> None:
        self.process = shell.start("serve", "--port", str(port), *arguments)
        self.lines: list[str] = []
        self._clients: list[httpx.Client] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        until(lambda: self.url or self.process.poll() is not None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            client.close()
        if self.process.poll() is None:
            self.end()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def url(self) -> str:
        """Where it serves; empty until it does."""
        found = re.search(r"Serving on (http://\S+);", "".join(self.lines))
        return found[1] if found else ""

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def told(self) -> list[dict[str, Any]]:
        """Its log, line by line."""
        return [json.loads(line) for line in self.lines]

    def client(self, **options: Any) -> httpx.Client:
        made = httpx.Client(base_url=self.url, timeout=SECONDS, trust_env=False, **options)
        self._clients.append(made)
        return made

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to end; its status and what it complained of."""
        self.process.send_signal(number)
        status = self.process.wait(SECONDS)
        self._reader.join(SECONDS)
        assert self.process.stderr is not None
        return status, self.process.stderr.read().strip()


def until(condition: Callable[[], object]) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came to pass"
        time.sleep(0.02)
