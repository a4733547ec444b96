"""Many clients of a server at once, over real sockets that stay open. Also a program of its own, so that a
benchmark's own event loop has nothing to do with them: `python -m tests.http_clients URL CLIENTS SEARCHES < queries`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEAD_BYTES = 64 * 1024
_LENGTH = re.compile(rb"^content-length: (\d+)", re.MULTILINE)
_ENGINE = re.compile(rb"^server-timing: engine;dur=([\d.]+)", re.MULTILINE)


@dataclass
class Outcome:
    """Seconds as the clients waited and as the engine says, search by search; and what was no answer."""

    waits: list[float] = field(default_factory=list)
    engine: list[float] = field(default_factory=list)
    found: int = 0
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0


async def search(url: str, queries: Sequence[str], *, clients: int, searches: int, k: int = 3) -> Outcome:
    """So many searches by so many clients; each query in its turn."""
    outcome, start = Outcome(), time.perf_counter()
    left = iter(range(searches))
    await asyncio.gather(*(_client(url, queries, left, outcome, k) for _ in range(clients)))
    outcome.seconds = time.perf_counter() - start
    return outcome


async def _client(url: str, queries: Sequence[str], left: Iterator[int], outcome: Outcome, k: int) -> None:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        for number in left:
            query = quote(queries[number % len(queries)])
            start = time.perf_counter()
            writer.write(f"GET /search?q={query}&k={k} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            outcome.waits.append(time.perf_counter() - start)
            told = _ENGINE.search(head)
            if head.split(b" ", 2)[1] != b"200" or told is None:
                outcome.errors.append((head + body).decode())
                continue
            outcome.engine.append(float(told[1]) / 1000)
            outcome.found += len(json.loads(body)["citations"])
    except (OSError, asyncio.IncompleteReadError) as error:
        outcome.errors.append(repr(error))
    finally:
        writer.close()


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    done = asyncio.run(search(sys.argv[1], asked, clients=int(sys.argv[2]), searches=int(sys.argv[3])))
    json.dump(asdict(done), sys.stdout)
