"""The engine: everything Noctuary does, without a screen.

`Engine.open` is the only way in. Doors and screens call its parts; nothing here imports a toolkit.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from engine.activity import ActivityLog
from engine.services import Services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from engine.database import Change, Database
    from engine.inbox import Inbox
    from engine.models.embedding.base import Embedder
    from engine.notes import Notes
    from engine.settings import Settings

__all__ = ["Engine"]

_PARTS = ("engine.notes.search", "engine.notes.watcher", "engine.notes.worker", "engine.inbox", "watchfiles")
"""Imported in a thread while the database opens: half a second that no screen shall wait for."""


def _load() -> None:
    for part in _PARTS:
        importlib.import_module(part)


class Engine:
    """One process's engine: a database, and what is built over it."""

    def __init__(
        self, settings: Settings, database: Database, embedder: Embedder, log: ActivityLog, services: Services
    ) -> None:
        from engine.inbox import Inbox
        from engine.notes import Notes

        self.settings = settings
        self.database = database
        self.log = log
        self._embedder = embedder
        self._services = services
        self.notes: Notes = Notes(database, embedder, settings, services)
        self.inbox: Inbox = Inbox(database, self.notes)

    @classmethod
    async def open(
        cls,
        settings: Settings,
        *,
        application: str = "noctuary",
        on_state: Callable[[str], None] | None = None,
    ) -> Engine:
        """Open the database and what stands on it; `on_state` hears what takes long.

        Raises:
            DatabaseError: the server cannot be reached or used.
            SettingsError: a setting names something that does not exist.
        """
        from engine.database import Database
        from engine.models.embedding.base import open_embedder

        embedder = open_embedder(settings)
        log = ActivityLog()
        log.open(settings.paths.state, settings.log_level)
        loading = asyncio.create_task(asyncio.to_thread(_load))
        try:
            database = await Database.open(settings, application=application, on_state=on_state)
        except BaseException:
            log.shut()
            raise
        finally:
            await loading
        engine = cls(settings, database, embedder, log, Services())
        try:
            await engine.notes.prepare()
        except BaseException:
            await engine.close()
            raise
        return engine

    async def close(self) -> None:
        """Stop the background work, give back what is in hand, and leave the database."""
        await self._services.stop()
        await self._embedder.close()
        await self.database.close()
        self.log.shut()

    async def start(self, *, watch: bool = True, work: bool = True, embed: bool = True) -> None:
        """Start background services: `watch` the folders, `work` off the queue, `embed` the passages."""
        for path in self.settings.corpus_path:
            await self.notes.add_folder(path)
        await self.notes.start(watch=watch, work=work, embed=embed)

    @property
    def faults(self) -> dict[str, str]:
        """Background services that fell and will be started again, each with the reason."""
        return dict(self._services.faults)

    def subscribe(self, *topics: str) -> AsyncIterator[Change]:
        """Changes of the named tables (`folder`, `file`, `job`, `embedding`), made by any process."""
        return self.database.feed.subscribe(*topics)
