"""A server that speaks Ollama's protocol over real sockets and does as a test tells it."""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

DIMENSION = 8
NAME = "all-minilm:latest"
DIGEST = "0123456789abcdef" * 4


@dataclass
class Asked:
    """A request as it came."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Answer:
    """What is sent back: bytes as they are, anything else as JSON. `cut` breaks the body off."""

    body: object
    status: int = 200
    cut: bool = False


@dataclass
class ScriptedOllama:
    """Use as a context manager. `answers` replaces what a path answers; `held` paths wait for `gate`."""

    models: dict[str, dict[str, Any]] = field(default_factory=lambda: {NAME: {}})
    digest: str = DIGEST
    dimension: int = DIMENSION
    answers: dict[str, Callable[[Asked], Answer]] = field(default_factory=dict)
    held: Callable[[Asked], bool] = lambda asked: False
    asked: list[Asked] = field(default_factory=list)
    port: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()
        """Set when a request is held."""
        self.dropped = asyncio.Event()
        """Set when the client hung up on a held request."""
        self._at_once = 0
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def embedded(self) -> list[list[str]]:
        """The texts of each request for vectors."""
        return [asked.body["input"] for asked in self.asked if asked.path == "/api/embed"]

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Hang up on everyone."""
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        await self.stop()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _request(reader)) is not None:
                self.asked.append(asked)
                self._at_once += 1
                self.most_at_once = max(self.most_at_once, self._at_once)
                try:
                    if self.held(asked) and not await self._hold(reader):
                        return
                    await _send(writer, self._answer(asked))
                finally:
                    self._at_once -= 1
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    async def _hold(self, reader: asyncio.StreamReader) -> bool:
        """Wait for the gate; False when the client hung up before."""
        self.waiting.set()
        gate, gone = asyncio.ensure_future(self.gate.wait()), asyncio.ensure_future(reader.read(1))
        await asyncio.wait([gate, gone], return_when=asyncio.FIRST_COMPLETED)
        gate.cancel()
        if gone.done():
            self.dropped.set()
            return False
        gone.cancel()
        await asyncio.wait([gone])
        return True

    def _answer(self, asked: Asked) -> Answer:
        if asked.path in self.answers:
            return self.answers[asked.path](asked)
        if asked.path == "/api/tags":
            models = [{"model": name, "name": name, "digest": self.digest, "size": 7} for name in self.models]
            return Answer({"models": models})
        name = asked.body.get("model", "")
        shown = next((self.models[known] for known in (name, f"{name}:latest") if known in self.models), None)
        if shown is None:
            return Answer({"error": f'model "{name}" not found, try pulling it first'}, 404)
        if asked.path == "/api/show":
            return Answer({"model_info": {}, "details": {}, **shown})
        return Answer({"embeddings": [vector(text, self.dimension) for text in asked.body["input"]]})


@contextmanager
def in_thread(server: ScriptedOllama) -> Iterator[ScriptedOllama]:
    """The server on a loop in a thread of its own, for tests that are not asynchronous."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """A vector of a text, always the same, not of length 1."""
    values: list[float] = np.random.default_rng(zlib.crc32(text.encode())).normal(size=dimension).tolist()
    return values


async def _request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(first.split(" ")[1], json.loads(body or b"{}"), headers)


async def _send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
    length = len(body) + 10 * answer.cut
    writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (answer.status, length) + body)
    await writer.drain()
    if answer.cut:
        raise ConnectionResetError
