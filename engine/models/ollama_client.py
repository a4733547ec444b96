"""The client of an Ollama server, and what all who ask one say of its faults.

The library is imported where it is used: httpx under it loads its own command line, and with it a
terminal toolkit where one is installed, which no import of the engine may do.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from engine.errors import ModelError
from engine.settings import mask

if TYPE_CHECKING:
    import ollama

CONNECT_SECONDS = 3.0

LONGEST_REASON = 300

START = "Start it: ollama serve, or set OLLAMA_URL."


def client(url: str, **more: Any) -> ollama.AsyncClient:  # noqa: ANN401 - what httpx takes
    """A client of the server. A proxy of the environment is not for this machine's own addresses,
    and what stands before an `@` is a user and a password, which the library would drop. `more` is for httpx.

    Raises:
        ModelError: no client can be made of the address or the environment's proxy.
    """
    import httpx
    import ollama

    parts = urlsplit(url)
    user = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
    local = is_local(parts.hostname or "")
    try:
        return ollama.AsyncClient(url, timeout=timeout, auth=user, trust_env=not local, **more)
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        raise ModelError(
            f"Ollama cannot be reached at {mask(url)}: {line(error)}.",
            remedy="Check OLLAMA_URL, and the proxy that the environment names (HTTP_PROXY, ALL_PROXY).",
        ) from error


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def line(reason: object) -> str:
    """A foreign reason as part of a sentence: one line, bounded, without its full stop or a password."""
    words = " ".join(str(reason).split()) or type(reason).__name__
    return mask(words[:LONGEST_REASON].rstrip(". "))
