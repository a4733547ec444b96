"""ASGI by its types, and answers that need no framework: whoever stands before the routes gives them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = Iterable[tuple[str, str]]


def header(scope: Scope, name: bytes) -> str | None:
    """A header of the request (its name in lower case); the first, where it is given more than once."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return None


def every(scope: Scope, name: bytes) -> list[bytes]:
    """A header of the request (its name in lower case) as it came, as often as it is given."""
    return [bytes(value) for key, value in scope["headers"] if key == name]


async def answer(send: Send, status: int, detail: str, headers: Headers = (), **more: str) -> None:
    """Send an error in the shape that all of them have: `{"detail": …}`."""
    body = json.dumps({"detail": detail, **more}).encode()
    told = [("content-type", "application/json"), ("content-length", str(len(body))), *headers]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told],
        }
    )
    await send({"type": "http.response.body", "body": body})
