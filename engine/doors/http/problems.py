"""What goes wrong, as an answer: what the client did is told to it, and nothing else is told to anybody.

Each is `{"detail": a sentence}`. A fault that nobody foresaw has an `id`, by which the log tells the rest.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from engine.doors.http.shapes import Problem
from engine.errors import (
    BrainError,
    CoreUnknown,
    DatabaseUnavailable,
    DatasetError,
    FolderError,
    LessonError,
    NoctuaryError,
    QueryError,
    SynthesisBusy,
    TurnError,
    TurnGone,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI, Request

AWAY_SECONDS = 5
"""When to ask again while the database is away: its connection is looked for about as often."""

BUSY_SECONDS = 2
"""When to ask again while others take all turns."""


LEARNING_SECONDS = 1
"""When to ask again while another learns in the same brain."""

OF_MEMORY = (
    (CoreUnknown, 404),
    (BrainError, 422),
    (TurnGone, 410),
    (TurnError, 422),
    (LessonError, 404),
)
"""Errors of memory with their statuses; the first that fits."""


class Busy(Exception):
    """No turn came in time."""


NO_SUCH_NOTE = "No note and no folder of notes of that path is there to be indexed."
NO_QUESTIONS = "There are no labelled questions to be asked, or they cannot be read."
AWAY = "The database is away."
BUSY = "The server is busy."
FAULT = "Internal error."


ERRORS = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "Another site's page asked.",
    404: "There is none of that number, path or name.",
    409: "There are no labelled questions.",
    410: "The token was used, has expired, or is none of this brain's.",
    413: "The body is too long.",
    414: "The address is too long.",
    415: "The body is not application/json.",
    421: "The server does not answer to that host name.",
    422: "Something in the request is not valid.",
    429: "Too many requests.",
    431: "The headers are too long.",
    500: "A fault of the server; its log tells of it by the id.",
    503: "The database is away, or all turns are taken.",
}


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
    if isinstance(error, SynthesisBusy):
        return _answer(503, error.message, {"retry-after": str(LEARNING_SECONDS)})
    if isinstance(error, QueryError):
        return _answer(422, str(error))
    for kind, status in OF_MEMORY:
        if isinstance(error, kind):
            return _answer(status, error.message)  # the remedy may name a folder
    if isinstance(error, FolderError):
        return _answer(404, NO_SUCH_NOTE)
    if isinstance(error, DatasetError):
        return _answer(409, NO_QUESTIONS)
    raise error  # it is a fault of this server, and told as one


async def _fault(request: Request, _error: Exception) -> JSONResponse:
    return _answer(500, FAULT, id=request.state.fault)


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors of a route for the OpenAPI document; those of the guard are added to all."""
    return {status: {"model": Problem, "description": ERRORS[status]} for status in statuses}
