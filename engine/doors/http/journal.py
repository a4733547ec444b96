"""The log of requests: method, path, status and time. What was asked for is in it at level debug alone.

It stands before all else, so it sees every answer; and it is the last to see a fault, which it logs in full.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from engine.doors.http import problems
from engine.doors.http.asgi import answer

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.doors.http.asgi import App, Message, Receive, Scope, Send

LONGEST_PATH = 200
"""Letters of a path that are logged: it is whatever a stranger sent."""

_log = logging.getLogger("noctuary.http")


class Journal:
    """An application whose requests are logged; those for `quiet` paths at level debug if all is well."""

    def __init__(self, app: App, quiet: Collection[str] = ()) -> None:
        self._app = app
        self._quiet = frozenset(quiet)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        fault = scope.setdefault("state", {})["fault"] = problems.new_id()
        try:
            await self._app(scope, receive, noting)
        except asyncio.CancelledError:
            # The server ends, and its patience with open requests has.
            if not status:
                await answer(noting, 503, "The server is ending.", (("connection", "close"),))
        # Whatever a route did not foresee must not end the connection without a word; the log has all of it.
        except Exception:  # noqa: BLE001
            _log.exception("%s %s: fault %s", scope["method"], _path(scope), fault)
            if not status:
                await answer(noting, 500, problems.FAULT, id=fault)
        self._note(scope, status, time.perf_counter() - begun)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        if not status:
            _log.info("%s %s: the client went away", scope["method"], _path(scope))
            return
        level = logging.DEBUG if status < 400 and scope["path"] in self._quiet else logging.INFO
        _log.log(level, "%s %s %d %.0f ms", scope["method"], _path(scope), status, seconds * 1000)
        if scope["query_string"]:
            _log.debug("asked for ?%s", scope["query_string"].decode("latin-1"))


def _path(scope: Scope) -> str:
    """The path as it can stand on a line."""
    return quote(scope["path"][:LONGEST_PATH], safe="/", errors="replace")
