"""The engine: everything Noctuary does, without a screen.

`Engine.open` is the only way in. Doors and screens call its parts; nothing here imports a toolkit.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from engine.activity import ActivityLog
from engine.errors import DatabaseError, DatabaseUnavailable, NoctuaryError
from engine.services import Services, sentence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from engine.database import Change, Database
    from engine.inbox import Inbox
    from engine.language import Language
    from engine.memory import Memory
    from engine.models.embedding.base import Embedder
    from engine.notes import Notes
    from engine.notes.evaluation import Evaluation
    from engine.notes.filelist import Files
    from engine.notes.requests import IndexRequests
    from engine.notes.traces import Traces
    from engine.notes.writer import Writer
    from engine.settings import Settings

__all__ = ["Engine"]

_PARTS = (
    "engine.notes.search",
    "engine.notes.ask",
    "engine.notes.evaluation",
    "engine.notes.filelist",
    "engine.notes.requests",
    "engine.notes.watcher",
    "engine.notes.worker",
    "engine.notes.writer",
    "engine.inbox",
    "engine.memory",
    "watchfiles",
)
"""Imported in a thread while the database opens: half a second that no screen shall wait for."""

ADD_AGAIN_SECONDS = 2.0
"""Between two attempts to add a folder while the database is away."""

_log = logging.getLogger("noctuary.folders")


def _load() -> None:
    for part in _PARTS:
        importlib.import_module(part)


class Engine:
    """One process's engine: a database, and what is built over it."""

    def __init__(
        self, settings: Settings, database: Database, embedder: Embedder, log: ActivityLog, services: Services
    ) -> None:
        from engine.inbox import Inbox
        from engine.language import Language
        from engine.memory import Memory
        from engine.notes import Notes
        from engine.notes.ask import Asking
        from engine.notes.evaluation import Evaluation
        from engine.notes.filelist import Files
        from engine.notes.requests import IndexRequests
        from engine.notes.traces import Traces
        from engine.notes.writer import Writer

        self.settings = settings
        self.database = database
        self.log = log
        self._services = services
        self._to_add: list[Path] = []
        self.notes: Notes = Notes(database, embedder, settings, services)
        self.traces: Traces = Traces(database, database.application, keep=settings.traces)
        self.notes.on_search = self.traces.searched
        self.evaluation: Evaluation = Evaluation(database, settings, self.notes)
        self.language: Language = Language(database, settings)
        self.memory: Memory = Memory(database, settings, self.notes.embedders, self.language)
        self.inbox: Inbox = Inbox(database, self.notes, self.evaluation, self.memory.lessons)
        self.writer: Writer = Writer(database, self.notes, self.language)
        self.files: Files = Files(database, self.notes)
        self.requests: IndexRequests = IndexRequests(database, self.notes)
        self.asking: Asking = Asking(self.notes, self.language, settings, self.traces)

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
        from engine.models.embedding import open_embedder
        from engine.notes.embedders import wanted

        # What the settings name is judged before anything is opened.
        await open_embedder(settings).close()
        async with AsyncExitStack() as undo:
            log = ActivityLog()
            undo.callback(log.shut)
            log.open(settings.paths.state, settings.log_level)
            loading = asyncio.create_task(asyncio.to_thread(_load))
            try:
                database = await Database.open(settings, application=application, on_state=on_state)
            finally:
                await loading
            undo.push_async_callback(database.close)
            engine = cls(settings, database, await wanted(database, settings), log, Services())
            undo.push_async_callback(engine.notes.embedders.close)
            await engine.notes.prepare()
            undo.pop_all()
        return engine

    async def close(self) -> None:
        """Stop the background work, give back what is in hand, and leave the database."""
        await self._services.stop()
        await self.notes.embedders.close()
        await self.language.close()
        await self.traces.close()
        await self.database.close()
        self.log.shut()

    async def start(
        self, *, watch: bool = True, work: bool = True, embed: bool = True
    ) -> list[NoctuaryError]:
        """Start background services: `watch` the folders, `work` off the queue, `embed` the passages. What is
        remembered gets its vectors in any case: they are few, and wanted for the next turn.

        The folders of the settings are added first. What keeps one of them away keeps no service from
        starting; it is returned, as by `add_folders`.
        """
        self.keep("reconnections", self._follow_reconnections)
        errors = await self.add_folders(self.settings.corpus_path)
        await self.notes.start(watch=watch, work=work, embed=embed)
        self.memory.start(self._services)
        return errors

    async def _follow_reconnections(self) -> None:
        """What fell with the database need not wait out its pause when that is back."""
        from engine.database import RECONNECTED

        async for _ in self.database.feed.subscribe(RECONNECTED):
            self._services.retry_now()

    def keep(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        """Keep `run` running in the background until the engine is closed; its falls are told as faults."""
        self._services.start(name, run)

    async def add_folders(self, paths: Sequence[Path]) -> list[NoctuaryError]:
        """Add folders, each for itself; returns and logs an error for each that cannot be added.

        While the database is away they wait: they are added in the background once it is back.
        """
        import psycopg

        errors: list[NoctuaryError] = []
        for number, path in enumerate(paths):
            try:
                await self.notes.add_folder(path)
            except DatabaseUnavailable as error:
                errors.append(error)
                self._to_add += paths[number:]
                self._services.start("add folders", self._add_again)
                break
            except NoctuaryError as error:
                errors.append(error)
            except psycopg.Error as error:
                errors.append(DatabaseError(f"The folder {path} was not added: {sentence(error)}."))
        for each in errors:
            _log.error("%s", each)
        return errors

    async def _add_again(self) -> None:
        while self._to_add:
            try:
                await self.notes.add_folder(self._to_add[0])
            except DatabaseUnavailable:
                await asyncio.sleep(ADD_AGAIN_SECONDS)
                continue
            except NoctuaryError as error:
                _log.error("%s", error)
            self._to_add.pop(0)

    @property
    def faults(self) -> dict[str, str]:
        """Background services that fell and will be started again, each with the reason."""
        return dict(self._services.faults)

    def subscribe(self, *topics: str) -> AsyncIterator[Change]:
        """Changes of the named tables (`folder`, `file`, `job`, `embedding`), made by any process."""
        return self.database.feed.subscribe(*topics)
