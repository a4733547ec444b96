"""The server's life: it takes connections until it is told to end; what is open then has a moment."""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Iterator, Sequence
    from socket import socket

    from engine.doors.http.asgi import App

MOST_CONNECTIONS = 512
"""Open at once, idle ones too; more are closed. `Bounds` refuses sooner what is asked over them."""

PATIENCE = 5
"""Seconds that open requests have when the server is told to end."""

HEADER_SECONDS = 10.0
"""Seconds until a connection that sends no whole request is closed."""

LONGEST_HEAD = 64 * 1024
"""Bytes of a request's head that are read at most; `Bounds` refuses less, and says why."""

LIBRARY = "uvicorn"
_log = logging.getLogger("noctuary.http")


class Impatient(H11Protocol):
    """Closes a connection over which no whole head of a request comes in time."""

    _waiting: TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        if isinstance(transport, asyncio.Transport):
            super().connection_made(transport)
            self._wait()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        """Let the time run from the first byte of a head, not from the last one; a request that is being
        answered has all the time it needs.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_no_more()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class _Server(uvicorn.Server):
    """Signals are ours: they end the whole process, and the server with it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve(app: App, sockets: Sequence[socket]) -> None:
    """Serve until cancelled; then take no more requests, and give the open ones `PATIENCE` seconds."""
    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # anybody can write what they say of the client
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=PATIENCE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
    )
    server = _Server(config)
    with _forwarded():
        serving = asyncio.create_task(server.serve(list(sockets)), name="http server")
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            with suppress(asyncio.CancelledError):
                await serving


class _Forward(logging.Handler):
    """What the library says goes into our log: it has no other place, and would land on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a record on."""
        _log.log(record.levelno, "%s", record.getMessage().strip(), exc_info=record.exc_info)


@contextmanager
def _forwarded() -> Iterator[None]:
    logger = logging.getLogger(LIBRARY)
    handler, level, propagate = _Forward(), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate
