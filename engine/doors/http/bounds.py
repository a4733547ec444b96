"""How many requests there may be, how long each, and how long it may take to come. Whoever went away is not
worked for.

The body is read here, whole, before anything looks at it: it is small, and the bound holds for every route.
That of a turn may be large, so only a few of those are held at a time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.doors.http.asgi import answer, header

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.doors.http.asgi import App, Message, Receive, Scope, Send

BODY_BYTES = 64 * 1024
"""The longest question is a tenth of it in any script."""

LARGE_BYTES = 4 * 1024 * 1024
"""A turn of a megabyte, in any script and with every sign beyond ASCII written as an escape."""

MOST_LARGE = 8
"""Bodies longer than `BODY_BYTES` that are held at once."""

TARGET_BYTES = 32 * 1024
"""Path and query: the longest question with each byte as three signs, and room."""

HEADER_BYTES = 16 * 1024

MOST_OPEN = 128
"""Requests that are answered or wait for their turn at once."""

AGAIN_SECONDS = 2
"""When one that is too many may come again."""

BODY_SECONDS = 10.0
"""A body of that size comes in one, over any line."""

LARGE_SECONDS = 60.0
"""The same for a large one: four megabytes over half a megabit."""


class Bounds:
    """An application that gets only so many requests, of a bounded size, whole. `large` are paths to which a
    large body may be sent.
    """

    def __init__(self, app: App, large: Collection[str] = ()) -> None:
        self._app = app
        self._large = frozenset(large)
        self._open = 0
        self._held = 0  # of the open ones, those that may be large

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > TARGET_BYTES:
            await answer(send, 414, "The address is too long.", _CLOSE)
            return
        if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
            await answer(send, 431, "The headers are too long.", _CLOSE)
            return
        large = scope["path"] in self._large and not _small(scope)
        if self._open >= MOST_OPEN or (large and self._held >= MOST_LARGE):
            await answer(send, 503, "The server is busy.", (*_CLOSE, ("retry-after", str(AGAIN_SECONDS))))
            return
        self._open += 1
        self._held += large
        try:
            await self._bounded(scope, receive, send, large=large)
        finally:
            self._open -= 1
            self._held -= large

    async def _bounded(self, scope: Scope, receive: Receive, send: Send, *, large: bool) -> None:
        most, seconds = (LARGE_BYTES, LARGE_SECONDS) if large else (BODY_BYTES, BODY_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                body = await _body(scope, receive, most)
        except TimeoutError:
            await answer(send, 408, "The body did not come.", _CLOSE)
            return
        except _TooLong:
            await answer(send, 413, f"The body is longer than {most:,} bytes.", _CLOSE)
            return
        if body is not None:
            await _while_wanted(self._app, scope, body, receive, send)


_CLOSE = (("connection", "close"),)
"""What follows on the connection is the rest of what was refused."""


class _TooLong(Exception):
    """The body is longer than it may be."""


def _announced(scope: Scope) -> int | None:
    """The length of the body, where it is told before."""
    told = header(scope, b"content-length") or ""
    return int(told) if told.isdecimal() else None


def _small(scope: Scope) -> bool:
    """Whether it is known beforehand that the body is."""
    told = _announced(scope)
    return told <= BODY_BYTES if told is not None else header(scope, b"transfer-encoding") is None


async def _body(scope: Scope, receive: Receive, most: int) -> bytes | None:
    """The whole body; None when the client went away in the midst of it."""
    if (_announced(scope) or 0) > most:
        raise _TooLong
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise _TooLong
        if not message.get("more_body", False):
            return bytes(body)


async def _while_wanted(app: App, scope: Scope, body: bytes | None, receive: Receive, send: Send) -> None:
    """The answer, unless its client goes away before: then the work for it ends."""
    gone = asyncio.create_task(_next(receive))
    answered = False

    async def replay() -> Message:
        nonlocal body
        if body is None:
            return await asyncio.shield(gone)
        whole, body = body, None
        return {"type": "http.request", "body": whole, "more_body": False}

    async def sending(message: Message) -> None:
        nonlocal answered
        answered = message["type"] == "http.response.body" and not message.get("more_body", False)
        await send(message)

    async def work() -> None:
        await app(scope, replay, sending)

    working = asyncio.create_task(work())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answered:
            await working
    finally:
        unwanted = working.cancel()
        gone.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)
    if not unwanted:
        working.result()


async def _next(receive: Receive) -> Message:
    return await receive()
