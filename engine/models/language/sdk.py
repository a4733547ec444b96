"""What the two SDKs have in common, which are made from one mould: their errors, told in our words.

Their own second tries are switched off: `calling` has the one policy. An error's text is foreign, and may
hold the key.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from engine.errors import LanguageError
from engine.models.language.calling import PASSING, Fault
from engine.models.language.waiting import retry_after
from engine.models.ollama_client import line

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
        told = LanguageError(f"{place.name} does not answer at {place.url}.", remedy=f"See {place.address}.")
        return Fault(told, again=True)
    if isinstance(error, sdk.APIConnectionError):
        reason = _safe(error.__cause__ or error, place)
        remedy = f"See that the network is there, and {place.address}."
        told = LanguageError(f"{place.name} cannot be reached at {place.url}: {reason}.", remedy=remedy)
        return Fault(told, again=True)
    told = LanguageError(f"{place.name} broke off: {_safe(error, place)}.", remedy="Try again.")
    return Fault(told, again=True)


def broken() -> tuple[type[Exception], ...]:
    """What an SDK lets through of the HTTP client under it, whose name changed, when an answer breaks off."""
    clients = [sys.modules[name] for name in ("httpx", "httpx2") if name in sys.modules]
    return (OSError, *(client.TransportError for client in clients))


def nonsense(place: Place) -> Fault:
    """What came is not in the provider's protocol."""
    told = f"What answers at {place.url} does not speak the protocol of {place.name}."
    return Fault(LanguageError(told, remedy=f"Correct {place.address}."))


def reason_of(error: Any) -> str:  # noqa: ANN401 - of either SDK
    """The sentence in the body of a refusal, where there is one."""
    body = error.body
    found = body.get("error", body) if isinstance(body, dict) else body
    told = found.get("message") if isinstance(found, dict) else found
    return line(told) if told else f"status {getattr(error, 'status_code', 'unknown')}"


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
    return Fault(told, again=status in PASSING, after=retry_after(error.response.headers))


def _safe(reason: object, place: Place) -> str:
    words = line(reason)
    return words.replace(place.secret, "***") if place.secret else words
