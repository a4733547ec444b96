"""Who may ask, and how often: a key, a limit by client, and no other site's page. Knows nothing of search.

It stands before an ASGI application, so that no route can forget it. `/health` is never guarded. A page that
holds no data may be fetched without a key; what it then asks for may not. Keys of other accounts open the
memory of theirs; the notes are the owner's alone.

A browser on this machine reaches a server that is open here, whatever page it shows. So a request is refused
that another site's page made, by what browsers say of it (`Origin`, `Sec-Fetch-Site`); so is one that names
another host, which is how a page whose name was turned to this address (DNS rebinding) passes for our own.
"""

from __future__ import annotations

import ipaddress
import math
import re
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.doors.http.asgi import answer, header
from engine.doors.http.keys import Unauthorized
from engine.memory.model import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.doors.http.asgi import App, Headers, Receive, Scope, Send
    from engine.doors.http.keys import Keys

HEALTH = "/health"
"""Never guarded: whoever looks after the process has no token."""

WINDOW = 60.0
"""Seconds of a client's window: fixed, from its first request."""

MOST_CLIENTS = 4096
"""Clients whose windows are remembered; the oldest window makes room for a new one."""

PREFIX_V6 = 64
"""Bits of an IPv6 address that tell clients apart: one machine has all that follow."""

READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Methods whose requests carry no body that means anything."""

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^][:@/\s]+)(?::\d*)?")

FOREIGN = frozenset({"cross-site", "same-site"})
"""What a browser says of a request that another site's page made; another port is another site."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not let through."""

    status: int
    detail: str
    headers: Headers = ()


class Windows:
    """Requests counted by client in fixed windows, in memory that has a bound."""

    def __init__(self, limit: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`limit` requests a window; 0 for any number."""
        self._limit = limit
        self._clock = clock
        self._counted: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, client: str) -> float:
        """Count a request; seconds until the client may ask again, 0 when it may now."""
        if not self._limit:
            return 0.0
        now = self._clock()
        begun, count = self._counted.get(client, (now, 0))
        if now - begun >= WINDOW:
            begun, count = now, 0
            self._counted.pop(client, None)  # it comes last again: the oldest window stands first
        if count >= self._limit:
            return begun + WINDOW - now
        self._counted[client] = (begun, count + 1)
        if len(self._counted) > MOST_CLIENTS:
            self._counted.popitem(last=False)
        return 0.0


@dataclass(frozen=True)
class Access:
    """An application behind the guard. Without `keys` it is open to whoever reaches it.

    `hosts` are the names it may be asked by, None for any; `bare` are paths that hold no data; `shared` are
    the first parts of paths that other accounts than the owner's may ask for. The application finds the
    account in the `state` of the scope.
    """

    app: App
    keys: Keys
    windows: Windows
    hosts: frozenset[str] | None = None
    bare: frozenset[str] = field(default_factory=frozenset)
    shared: frozenset[str] = field(default_factory=frozenset)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        refusal = self.refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self.app(scope, receive, send)
        else:
            close = (("connection", "close"),) if _has_body(scope) else ()
            await answer(send, refusal.status, refusal.detail, (*refusal.headers, *close))

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why this request is not let through; None when it is."""
        path: str = scope["path"]
        if path == HEALTH:
            return None
        bare = path in self.bare
        return (
            self._wrong_host(scope)
            or self._too_often(scope)
            or (None if bare else self._from_elsewhere(scope))
            or (None if bare else self._no_key(scope))
            or _no_json(scope)
        )

    def _wrong_host(self, scope: Scope) -> Refusal | None:
        if self.hosts is None:
            return None
        named = _HOST.fullmatch(header(scope, b"host") or "")
        if named and (named[1].lower() in self.hosts or _loopback(named[1].strip("[]"))):
            return None
        return Refusal(421, "This server does not answer to that host name.")

    def _too_often(self, scope: Scope) -> Refusal | None:
        wait = self.windows.wait(_client(scope))
        if not wait:
            return None
        seconds = str(max(1, math.ceil(wait)))
        return Refusal(429, "Too many requests.", (("retry-after", seconds),))

    def _from_elsewhere(self, scope: Scope) -> Refusal | None:
        origin, host = header(scope, b"origin"), header(scope, b"host") or ""
        ours = origin is None or (host != "" and origin.partition("://")[2].lower() == host.lower())
        if ours and header(scope, b"sec-fetch-site") not in FOREIGN:
            return None
        return Refusal(403, "Another site's page may not ask here.")

    def _no_key(self, scope: Scope) -> Refusal | None:
        try:
            account = self.keys.account(scope)
        except Unauthorized as error:
            challenge = 'Bearer realm="noctuary"' + (', error="invalid_token"' if error.shown else "")
            return Refusal(401, error.detail, (("www-authenticate", challenge),))
        if account != LOCAL and scope["path"].strip("/").partition("/")[0] not in self.shared:
            return Refusal(403, "This key opens the memory of its account, and nothing else.")
        scope.setdefault("state", {})["account"] = account
        return None


def _no_json(scope: Scope) -> Refusal | None:
    """A form of another page needs no leave to send text; JSON it may not send."""
    if scope["method"] in READING or not _has_body(scope):
        return None
    kind = (header(scope, b"content-type") or "").partition(";")[0].strip().lower()
    if kind == "application/json":
        return None
    return Refusal(415, "The body has to be application/json.")


def _has_body(scope: Scope) -> bool:
    return header(scope, b"transfer-encoding") is not None or header(scope, b"content-length") not in {
        None,
        "0",
    }


def _client(scope: Scope) -> str:
    """The peer by its own address: what a header says of it anybody can write."""
    peer = scope.get("client")
    if not peer:
        return ""
    try:
        address = ipaddress.ip_address(peer[0])
    except ValueError:
        return str(peer[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), PREFIX_V6), strict=False))
    return str(address)


def _loopback(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
