"""The doors that are started anew each time: how long until the first answer, from nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from figures import Figure, median, show

from engine import Engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from conftest import Installation

pytestmark = pytest.mark.benchmark

ROOT = Path(__file__).parents[2]
RUNS = 7
MCP_SECONDS, SEARCH_SECONDS = 2.5, 1.5

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"query": "device driver power state"}},
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture
async def populated(indexed: Installation) -> AsyncIterator[Installation]:
    """The corpus, indexed, its server kept running by an engine, as by any console."""
    engine = await Engine.open(indexed.settings, application="benchmark")
    yield indexed
    await engine.close()


def seconds(work: Callable[[], object]) -> float:
    """The middle of several runs."""
    waits = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        waits.append(time.perf_counter() - start)
    return median(waits)


def python(*arguments: str, environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True, capture_output=True)


def served(environment: dict[str, str], *, search: bool) -> float:
    """Seconds from the start of `noctuary mcp` to its answer to `initialize`, or to a search after it (which
    makes no vectors meanwhile: other benchmarks count on there being none).
    """
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "tui", "mcp", *(["--no-watch"] if search else [])],
        cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        for message in (HELLO, READY, CALL) if search else (HELLO,):
            process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        if search:
            answer = json.loads(process.stdout.readline())
            assert answer["result"]["structuredContent"]["citations"]
        waited = time.perf_counter() - start
        process.stdin.close()
    return waited


async def test_the_first_answers_of_what_is_started_anew(populated: Installation) -> None:
    environment = populated.environment
    bare = seconds(lambda: python("-c", "import mcp", environment=environment))
    first = median([served(environment, search=False) for _ in range(RUNS)])
    searched = median([served(environment, search=True) for _ in range(RUNS)])
    query = ("search", "device", "driver", "power", "state")
    shell = seconds(lambda: python("-m", "tui", *query, environment=environment))
    nothing = seconds(
        lambda: python("-c", "import click, numpy, psycopg, onnxruntime", environment=environment)
    )
    show(
        Figure(
            f"noctuary mcp: its first request, median of {RUNS} starts",
            f"{first:.2f} s ({first / bare:.1f} × the yardstick)",
            f"a Python that only imports mcp {bare:.2f} s",
            f"≤ {MCP_SECONDS:g} s",
            first <= MCP_SECONDS,
        ),
        Figure(
            "noctuary mcp: its first search, from the start",
            f"{searched:.2f} s ({searched / bare:.1f} × the yardstick)",
            f"a Python that only imports mcp {bare:.2f} s",
            f"≤ {MCP_SECONDS:g} s",
            searched <= MCP_SECONDS,
        ),
        Figure(
            f"noctuary search from the shell, median of {RUNS}",
            f"{shell:.2f} s ({shell / nothing:.1f} × the yardstick)",
            f"a Python that only imports what it stands on {nothing:.2f} s",
            f"≤ {SEARCH_SECONDS:g} s",
            shell <= SEARCH_SECONDS,
        ),
    )
