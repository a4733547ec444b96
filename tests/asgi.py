"""Requests to an ASGI application without a server, and what it answers."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.doors.http.asgi import App, Message, Receive, Scope, Send

Headers = dict[str, str]


@dataclass
class Reply:
    """What came back; status 0 when nothing did."""

    status: int = 0
    headers: Headers = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: App,
    path: str = "/",
    *,
    method: str = "GET",
    query: str = "",
    headers: Headers | None = None,
    peer: str | None = "127.0.0.1",
    pieces: Iterable[bytes] = (b"",),
    gone: asyncio.Event | None = None,
    stuck: bool = False,
) -> Reply:
    """One request: its body in `pieces`, after which the client stays until `gone`; `stuck`, no end comes."""
    reply, left = Reply(), list(pieces)
    told = {"host": "127.0.0.1:8765", **(headers or {})}
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
        "client": None if peer is None else (peer, 50_000), "root_path": "", "scheme": "http",
        "server": ("127.0.0.1", 8765), "http_version": "1.1", "asgi": {"version": "3.0"},
    }  # fmt: skip

    async def receive() -> Message:
        if left and not (stuck and len(left) == 1):
            body = left.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(left)}
        await (gone or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            reply.body += message.get("body", b"")

    await app(scope, receive, send)
    return reply


async def well(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers whatever reaches it with the length of the body."""
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(len(message["body"])).encode()})
