"""Whose memory a request means: the account of its key, and the core and end user of its headers.

Headers are bytes. What is UTF-8 is read as that, so that a name is the same one by every door; anything else
as latin-1, which is what older clients send.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from engine.doors.http.asgi import every
from engine.memory.model import LOCAL, LONGEST_KEY, BrainKey

if TYPE_CHECKING:
    from engine.doors.http.asgi import Scope

_CLEAN = r"^[^\x00-\x20\x7f-\x9f]+([^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\x9f])?$"
"""A name as the document tells it: blanks at its ends are none of a header's value."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

CORE, USER = "X-Khwan-Core", "X-Khwan-User"

ABOUT = (
    f"Memory is that of the account of the key. `{CORE}` names a core of it, `{USER}` an end user, each by 1"
    f" to {LONGEST_KEY} characters; without them it is the default core, and the core's own brain."
)


def account(request: Request) -> str:
    """The account of the request's key, which the guard has found."""
    return str(getattr(request.state, "account", LOCAL))


def brain_key(request: Request) -> BrainKey:
    """The whole key of the brain that a request means."""
    return BrainKey(account(request), _named(request.scope, CORE), _named(request.scope, USER) or "")


def _named(scope: Scope, header: str) -> str | None:
    """The name in a header.

    Raises:
        HTTPException: it is no name, or there are several.
    """
    given = every(scope, header.lower().encode())
    if not given:
        return None
    name = _decoded(given[0])
    if len(given) > 1 or not 1 <= len(name) <= LONGEST_KEY or _CONTROL.search(name):
        raise HTTPException(422, f"{header} has to be one name of 1 to {LONGEST_KEY} characters")
    return name


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _described(header: str, what: str) -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": _CLEAN}
    return {"name": header, "in": "header", "required": False, "description": what, "schema": schema}


PARAMETERS = [
    _described(CORE, "The core that is meant. Left out: the account's default one."),
    _described(USER, "The end user who is meant. Left out: the core's own brain."),
]
"""The headers for the OpenAPI document: they are read as bytes, which the framework would not do."""

Whose = Annotated[BrainKey, Depends(brain_key)]
Account = Annotated[str, Depends(account)]
