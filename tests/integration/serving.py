"""The HTTP door over a real engine, without a server: what its tests ask."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import Engine
from engine.doors.http.application import application
from tests.asgi import Headers, Reply, ask

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.doors.http.asgi import App
    from engine.settings import Settings

NOTES = {
    "birds/owls.md": "# Owls\n\nOwls hunt at night.\n\nThey see well.\n",
    "larks.md": "Larks sing at dawn.\n",
    "plan.md": "# Plan\n\nBuy a lantern for the owl walk.\n",
}


@dataclass
class Served:
    """An engine with a few notes, and the application over it."""

    engine: Engine
    app: App
    root: Path

    async def get(self, path: str, query: str = "", headers: Headers | None = None) -> Reply:
        return await ask(self.app, path, query=query, headers=headers)

    async def post(self, path: str, body: object = None, headers: Headers | None = None) -> Reply:
        return await self.send("POST", path, body, headers)

    async def send(
        self, method: str, path: str, body: object = None, headers: Headers | None = None
    ) -> Reply:
        sent = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        told = {"content-type": "application/json", "content-length": str(len(sent))} if sent else {}
        return await ask(self.app, path, method=method, headers=told | (headers or {}), pieces=[sent])

    async def json(self, path: str, query: str = "") -> Any:
        reply = await self.get(path, query)
        assert reply.status == 200, reply
        return reply.json


@asynccontextmanager
async def served(settings: Settings, root: Path, *, watching: bool = False) -> AsyncIterator[Served]:
    """An engine in which the notes are indexed, by their words."""
    for name, text in NOTES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    engine = await Engine.open(settings, application="noctuary serve")
    try:
        await engine.notes.add_folder(root)
        await engine.notes.index_all()
        await engine.notes.work_until_idle(embed=False)
        yield Served(engine, application(engine, watching=watching), root)
    finally:
        await engine.close()
