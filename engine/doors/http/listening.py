"""Where the server listens: the sockets, and what is refused before anything is opened."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import ServeError

if TYPE_CHECKING:
    from collections.abc import Sequence

BACKLOG = 128
"""Connections that wait until they are taken; those that come while the database opens do too."""

ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""What the system says of an address that is not this machine's."""


@dataclass(frozen=True, slots=True)
class Listening:
    """Sockets that listen. `hosts` are the names they may be asked by, beside every address of the machine's
    own; None for any.
    """

    sockets: tuple[socket.socket, ...]
    url: str
    hosts: frozenset[str] | None

    def close(self) -> None:
        """Give the addresses back; harmless where that was done."""
        for each in self.sockets:
            each.close()


def bind(host: str, port: int, *, guarded: bool) -> Listening:
    """Take the addresses of a host; port 0 for any that is free. `guarded` says that there is a token.

    Raises:
        ServeError: there is no such host here, the port is taken, or others could reach it and need no token.
    """
    addresses = _addresses(host, port)
    local = all(ipaddress.ip_address(address[0].partition("%")[0]).is_loopback for _, address in addresses)
    if not local and not guarded:
        raise ServeError(
            f"{host} can be reached from other machines, and no API_TOKEN keeps those from your notes.",
            remedy="Set API_TOKEN, or listen on 127.0.0.1.",
        )
    sockets = _listening(addresses, host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{sockets[0].getsockname()[1]}"
    hosts = frozenset({"localhost", host.lower()}) if local and not guarded else None
    return Listening(tuple(sockets), url, hosts)


_Found = tuple[socket.AddressFamily, tuple[Any, ...]]


def _addresses(host: str, port: int) -> list[_Found]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no host name"
        raise ServeError(f"The host {host!r} cannot be found: {reason}.", remedy="Check --host.") from error
    unique: list[_Found] = []
    for family, _, _, _, address in found:
        if family in {socket.AF_INET, socket.AF_INET6} and (family, address) not in unique:
            unique.append((family, address))
    return unique


def _listening(addresses: Sequence[_Found], host: str, port: int) -> list[socket.socket]:
    """A socket for each address this machine has: `localhost` names one of IPv6 also where there is none."""
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    with ExitStack() as undo:
        for family, address in addresses:
            # Any free port is the same one for all addresses of a name.
            wanted = port or (sockets[0].getsockname()[1] if sockets else 0)
            try:
                sockets.append(_one(family, (address[0], wanted, *address[2:])))
            except OSError as error:
                if error.errno not in ABSENT:
                    raise _unavailable(error, host, wanted) from error
                absent = error
            else:
                undo.callback(sockets[-1].close)
        if not sockets:
            raise _unavailable(absent or OSError(errno.EADDRNOTAVAIL, ""), host, port) from absent
        undo.pop_all()
    return sockets


def _one(family: socket.AddressFamily, address: tuple[str | int, ...]) -> socket.socket:
    # Without its protocol named, asyncio lets the system hold the end of each answer back for 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(BACKLOG)  # at once: two may be bound to a port, as long as neither listens
    except OSError:
        made.close()
        raise
    return made


def _unavailable(error: OSError, host: str, port: int) -> ServeError:
    if error.errno == errno.EADDRINUSE:
        return ServeError(
            f"Port {port} of {host} is in use by another program.",
            remedy="Stop that one, or give another --port.",
        )
    if error.errno == errno.EACCES:
        return ServeError(
            f"Port {port} of {host} may not be taken by this user.", remedy="Give a --port above 1023."
        )
    if error.errno in ABSENT:
        return ServeError(f"{host} is no address of this machine.", remedy="Check --host.")
    return ServeError(f"{host}:{port} cannot be listened on: {os.strerror(error.errno or 0)}.")
