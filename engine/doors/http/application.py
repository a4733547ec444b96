"""The application: routes behind their bounds, behind the guard, behind the log. And its OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders

from engine.doors.http import dashboard, memory_routes, problems, shapes, whose
from engine.doors.http.access import HEALTH, Access, Windows
from engine.doors.http.bounds import Bounds
from engine.doors.http.journal import Journal
from engine.doors.http.keys import Keys
from engine.doors.http.memory_routes import MemoryRoutes
from engine.doors.http.problems import ERRORS
from engine.doors.http.routes import QUIET, Routes
from engine.version import VERSION

if TYPE_CHECKING:
    from engine import Engine
    from engine.doors.http.asgi import App, Message, Receive, Scope, Send

SAFETY = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""On every answer: no other site's page may use one, and no cache keeps it."""

ABOUT = (
    "Notes you can cite, and memory you can audit. Errors are `{detail}`; what the server did not foresee has"
    f" an `id` for its log. {whose.ABOUT}"
)
SCHEMES = {
    "token": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
"""The ways to show a key; one of them, once."""


def application(engine: Engine, *, watching: bool, hosts: frozenset[str] | None = None) -> App:
    """All of it over one engine. `hosts` as in `Access`; `watching` as in `Routes`."""
    settings = engine.settings
    guarded = Access(
        Bounds(_Framework(engine, watching=watching), memory_routes.LARGE),
        Keys.of(settings.api_token, settings.api_keys),
        Windows(settings.rate_limit_per_minute),
        hosts,
        bare=frozenset({dashboard.PATH}),
        shared=memory_routes.PARTS,
    )
    return Journal(_Safe(guarded), QUIET)


class _Framework(FastAPI):
    """The framework with our routes. It shows no pages of its own: they would load scripts from elsewhere."""

    def __init__(self, engine: Engine, *, watching: bool) -> None:
        super().__init__(
            title="Noctuary",
            version=VERSION,
            description=ABOUT,
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
        )
        self._guarded = engine.settings.guarded
        self.include_router(Routes(engine, watching=watching).router())
        self.include_router(MemoryRoutes(engine).router())
        self.add_api_route(dashboard.PATH, dashboard.page, include_in_schema=False)
        problems.install(self)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return self.openapi_schema or _true(super().openapi(), guarded=self._guarded)


def _true(document: dict[str, Any], *, guarded: bool) -> dict[str, Any]:
    """The document with what the guard and the bounds answer, which the routes do not know of."""
    always = [413, 414, 431, 500]
    behind = [*([401] if guarded else []), 403, 421, 429]
    if guarded:
        document["components"]["securitySchemes"] = SCHEMES
    for path, item in document["paths"].items():
        for operation in item.values():
            free = path == HEALTH
            if guarded and not free:
                operation["security"] = [{name: []} for name in SCHEMES]
            for status in always if free else sorted([*always, *behind]):
                operation["responses"].setdefault(str(status), _problem(status))
    return document


def _problem(status: int) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{shapes.Problem.__name__}"}
    return {"description": ERRORS[status], "content": {"application/json": {"schema": schema}}}


class _Safe:
    """An application whose every answer has the headers of `SAFETY`."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SAFETY.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, safely)
