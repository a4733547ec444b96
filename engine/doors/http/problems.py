"""What goes wrong, as an answer: what the client did is told to it, and nothing else is told to anybody.

Each is `{"detail": a sentence}`. A fault that nobody foresaw has an `id`, by which the log tells the rest.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from engine.errors import DatabaseUnavailable, DatasetError, FolderError, NoctuaryError, QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request

AWAY_SECONDS = 5
"""When to ask again while the database is away: its connection is looked for about as often."""

BUSY_SECONDS = 2
"""When to ask again while others take all turns."""


class Busy(Exception):
    """No turn came in time."""


NO_SUCH_NOTE = "No note and no folder of notes of that path is there to be indexed."
NO_QUESTIONS = "There are no labelled questions to be asked, or they cannot be read."
AWAY = "The database is away."
BUSY = "The server is busy."
FAULT = "Internal error."


def install(app: FastAPI) -> None:
    """Let the application answer errors in our shape."""
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Busy, _busy)
    app.add_exception_handler(NoctuaryError, _foreseen)
    app.add_exception_handler(Exception, _fault)


def new_id() -> str:
    """A name for a fault, to be found in the log by."""
    return secrets.token_hex(6)


def _answer(status: int, detail: str, headers: Mapping[str, str] | None = None, **more: str) -> JSONResponse:
    return JSONResponse({"detail": detail, **more}, status, headers)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    return _answer(error.status_code, f"{error.detail}.".replace("..", "."), error.headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    """Which part of the request is not valid and why; never the part itself, which may be anything."""
    if not isinstance(error, RequestValidationError):
        raise error
    return _answer(422, " ".join(_sentence(each) for each in error.errors()[:5]))


def _sentence(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"][1:] if isinstance(part, str))
    return f"{place or error['loc'][0]}: {error['msg']}."


async def _busy(_request: Request, _error: Exception) -> JSONResponse:
    return _answer(503, BUSY, {"retry-after": str(BUSY_SECONDS)})


async def _foreseen(_request: Request, error: Exception) -> JSONResponse:
    """Errors of our family: their sentences are for who sits at the machine, but for those on a query."""
    if isinstance(error, DatabaseUnavailable):
        return _answer(503, AWAY, {"retry-after": str(AWAY_SECONDS)})
    if isinstance(error, QueryError):
        return _answer(422, str(error))
    if isinstance(error, FolderError):
        return _answer(404, NO_SUCH_NOTE)
    if isinstance(error, DatasetError):
        return _answer(409, NO_QUESTIONS)
    raise error  # it is a fault of this server, and told as one


async def _fault(request: Request, _error: Exception) -> JSONResponse:
    return _answer(500, FAULT, id=request.state.fault)
