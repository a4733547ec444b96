"""What the two SDKs have in common, which are made from one mould: their errors, told in our words.

Their own second tries are switched off: `calling` has the one policy. An error's text is foreign, and may
hold the key.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.errors import LanguageError
from engine.models.language.calling import ENVIRONMENT, PASSING, Fault, NotReached
from engine.models.language.waiting import retry_after
from engine.models.ollama_client import is_local, line
from engine.settings import mask

if TYPE_CHECKING:
    from types import ModuleType

CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model is asked. `key` is the setting that holds the secret, `address` the one of the place."""

    name: str
    model: str
    url: str
    secret: str
    key: str
    address: str


def fault(error: Exception, sdk: ModuleType, place: Place) -> Fault:
    """Why a call came to nothing; for every error that an SDK raises on purpose."""
    if isinstance(error, sdk.APIStatusError):
        return _refusal(error, place)
    if isinstance(error, sdk.APITimeoutError):
        told = LanguageError(
            f"{place.name} does not answer at {mask(place.url)}.", remedy=f"See {place.address}."
        )
        return Fault(told, again=True)
    if isinstance(error, sdk.APIConnectionError):
        reason = _safe(error.__cause__ or error, place)
        remedy = f"See that the network is there, and {place.address}."
        told = NotReached(f"{place.name} cannot be reached at {mask(place.url)}: {reason}.", remedy=remedy)
        return Fault(told, again=True)
    told = LanguageError(f"{place.name} broke off: {_safe(error, place)}.", remedy="Try again.")
    return Fault(told, again=True)


NONSENSE = (ValueError, TypeError, AttributeError, KeyError, RecursionError)
"""What code falls over that takes a protocol for granted."""


def broken() -> tuple[type[Exception], ...]:
    """What an SDK lets through of the HTTP client under it, whose name changed, when an answer breaks off."""
    clients = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return (OSError, *(client.RequestError for client in clients))


def settings_of(sdk: ModuleType, place: Place, silence: float) -> dict[str, Any]:
    """What both SDKs' clients are made with. A proxy of the environment is not for this machine's addresses.

    Raises:
        Fault: no client can be made: a proxy or certificates of the environment are not usable.
    """
    timeout = sdk.Timeout(silence, connect=CONNECT_SECONDS)
    local = is_local(urlsplit(place.url).hostname or "")
    try:
        client = sdk.DefaultAsyncHttpxClient(trust_env=not local, timeout=timeout)
    except (ImportError, OSError, ValueError) as error:
        told = f"{place.name} cannot be reached: {_safe(error, place)}."
        raise Fault(LanguageError(told, remedy=ENVIRONMENT)) from error
    return {"base_url": place.url, "max_retries": 0, "timeout": timeout, "http_client": client}


def nonsense(place: Place) -> Fault:
    """What came is not in the provider's protocol."""
    told = f"What answers at {mask(place.url)} does not speak the protocol of {place.name}."
    return Fault(LanguageError(told, remedy=f"Correct {place.address}."))


def reason_of(error: Any) -> str:  # noqa: ANN401 - of either SDK
    """The sentence in the body of a refusal, where there is one."""
    body = error.body
    found = body.get("error", body) if isinstance(body, dict) else body
    told = found.get("message") if isinstance(found, dict) else found
    return str(told) if told else f"status {getattr(error, 'status_code', 'unknown')}"


def arguments(parts: list[str]) -> dict[str, Any]:
    """A call's arguments, as JSON that came in parts; what is none becomes one that no schema knows."""
    told = "".join(parts)
    try:
        found = json.loads(told or "{}")
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"not valid": told[:200]}


def _refusal(error: Any, place: Place) -> Fault:  # noqa: ANN401 - of either SDK
    status, reason = error.status_code, _safe(reason_of(error), place)
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return Fault(LanguageError(f"{place.name} refused the key.", remedy=f"Correct {place.key}."))
    if status == HTTPStatus.NOT_FOUND:
        remedy = "Set CHAT_MODEL (or AGENT_MODEL) to one that it has."
        return Fault(LanguageError(f"{place.name} has no model {place.model}: {reason}.", remedy=remedy))
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        told = LanguageError(f"{place.name} has enough of us: {reason}.", remedy="Wait, or raise the quota.")
    else:
        told = LanguageError(f"{place.name} refused the request: {reason}.", remedy="Try again later.")
    # Within a stream that began well (200) it is most often that the server has too much to do.
    again = status in PASSING or status == HTTPStatus.OK
    return Fault(told, again=again, after=retry_after(error.response.headers))


def _safe(reason: object, place: Place) -> str:
    words = str(reason)
    return line(words.replace(place.secret, "***") if place.secret else words)
