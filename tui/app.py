"""The application: opens the engine behind the first paint, and carries news between it and the panes.

It holds what is global (engine, keymap, clock, status) and nothing of any pane.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker, WorkerState

from engine.errors import DatabaseUnavailable, NoctuaryError
from tui import work
from tui.driver import Driver
from tui.keymap import Keymap
from tui.live import APART, LOST, RECONNECTED, REDUCED_REPAINTS, REPAINTS, TOPICS, follow
from tui.panes.base import FetchFailed, Shown
from tui.screens.main import MainScreen
from tui.status_reader import StatusReader
from tui.themes import restore, without_colour
from tui.widgets.status_line import Health

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from engine import Engine
    from engine.notes.model import NotesStatus
    from engine.settings import Settings
    from tui.messages import Changed, EngineFailed, EngineReady, Flash, Opening, Started, StatusRead
    from tui.panes.base import Pane

_log = logging.getLogger("noctuary.screen")

HEARTBEAT_SECONDS = 15.0
"""Between two looks whether the watchers still give signs of life; nothing is painted while they do."""
RETRY_SECONDS = 2.0
"""Between two attempts to reach a database that is away: short enough to feel at once, and cheap."""
BACKGROUND = "background"
"""Group of the workers that never end; the others are what makes the app busy."""


def _now() -> datetime:
    return datetime.now(UTC)


class NoctuaryApp(App[None]):
    """The console. `folder` is added when the engine is open; `now` is the clock of everything shown."""

    CSS_PATH = "noctuary.tcss"
    TITLE = "noctuary"
    ENABLE_COMMAND_PALETTE = False  # its key would be taken away from inputs; ours opens it by action

    def __init__(
        self, settings: Settings, folder: Path | None = None, *, now: Callable[[], datetime] = _now
    ) -> None:
        self.keys = Keymap(settings.keys)
        super().__init__(driver_class=Driver)
        self.settings = settings
        self.folder = folder
        self.now = now
        self.engine: Engine | None = None
        self.status: NotesStatus | None = None
        self.trouble: NoctuaryError | None = None
        self.opening = "starting"
        self._main = MainScreen()
        self.status_reader = StatusReader(self)
        self.news_waiting = False
        self._leaving: asyncio.Task[None] | None = None
        self.set_keymap(self.keys.overrides)
        restore(self, settings.paths)
        if self.no_color:
            without_colour(self)

    def get_default_screen(self) -> MainScreen:
        """The screen with the panes."""
        return self._main

    @property
    def active_pane(self) -> Pane[Any] | None:
        """The pane that is up."""
        return self._main.active_pane

    @property
    def panes(self) -> tuple[Pane[Any], ...]:
        """Every pane, by number."""
        return self._main.panes

    def go(self, scope: str, kind: str = "") -> None:
        """Bring up a pane, at what `kind` names."""
        self._main.go(scope, kind)

    @property
    def health(self) -> Health:
        """What the status line says."""
        info = self.engine.database.info if self.engine is not None else None
        place = "" if info is None else "embedded" if info.embedded else "server"
        return Health("" if self.engine is not None else self.opening, self.status, self.trouble, place)

    @property
    def busy(self) -> bool:
        """Whether anything is under way that will change the screen; tests wait until it is not."""
        opening = self.engine is None and self.trouble is None
        working = any(not w.is_finished for w in self.workers if w.group != BACKGROUND)
        waiting = self.status_reader.waiting or any(pane.fetching for pane in self.panes)
        return opening or working or waiting or self.news_waiting

    @property
    def fault(self) -> Exception | None:
        """What ended the app, if it was not the user."""
        return self._exception

    def _fatal_error(self) -> None:
        """End for a fault of ours. Whoever runs the app tells it: Textual would print the values of all
        variables, which are texts of notes and passwords, as they are.
        """
        self._close_messages_no_wait()

    def spawn(self, work: Coroutine[Any, Any, None], group: str, description: str) -> Worker[None]:
        """Run a worker; one of a group at a time, the newer cancels the older."""
        worker = self.run_worker(
            work, name=group, group=group, description=description, exclusive=True, exit_on_error=False
        )
        if (task := worker._task) is not None:  # noqa: SLF001  (it has no other end to hear of)
            # One that is cancelled before its first step would be told on the terminal as never awaited.
            task.add_done_callback(lambda _: work.close())
        return worker

    # Opening the engine ------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Paint first, then open the engine."""
        self.call_after_refresh(self.open_engine)
        self.set_interval(HEARTBEAT_SECONDS, self.status_reader.now)

    def open_engine(self) -> None:
        """Open the engine in a worker."""
        self.trouble = None
        self.spawn(work.open_engine(self.settings, self.post_message), "open", "open the database")

    def on_opening(self, message: Opening) -> None:
        """Say how far opening has come."""
        self.opening = message.text
        self._main.show_status()

    async def on_engine_ready(self, message: EngineReady) -> None:
        """The database is open: show what it holds, listen, and start the services behind it."""
        if self._leaving is not None:  # it was opened in vain
            await message.engine.close()
            return
        engine = self.engine = message.engine
        rate = REDUCED_REPAINTS if self.settings.reduced_repaint else REPAINTS
        self.run_worker(
            follow(self, engine.subscribe(*TOPICS), rate),
            group=BACKGROUND,
            description="follow changes",
            exit_on_error=False,
        )
        self.spawn(work.start(engine, self.folder, self.post_message), "start", "start watching")
        self.status_reader.now()
        self._main.engine_ready()

    def on_started(self, message: Started) -> None:
        """The services run. Without a folder there is nothing to do: ask for one."""
        gc.freeze()  # all that is loaded stays: to look through it for garbage would hold the screen up
        self.status_reader.now()
        if not message.folders:
            self._main.ask_for_folder(
                "Which folder of Markdown notes shall be searched? It is never modified."
            )
        if message.errors:
            self._main.show_errors(message.errors)

    def on_engine_failed(self, message: EngineFailed) -> None:
        """Opening failed: try again when the server is only away, else say what is wrong."""
        error = message.error
        self.engine_failed(error)
        for pane in self.panes:
            pane.shown(Shown.EMPTY, f"{error.title}: {error}")
        if isinstance(error, DatabaseUnavailable):
            self.set_timer(RETRY_SECONDS, self.open_engine)
        else:
            self._main.show_error(error)

    def engine_failed(self, error: NoctuaryError) -> None:
        """The engine did not answer; a database that is away is said in the status line."""
        self.trouble = error
        self._main.show_status()

    # News of the engine ------------------------------------------------------------------------

    def on_changed(self, message: Changed) -> None:
        """Rows changed: the status line and the panes they belong to read again."""
        if LOST in message.topics and RECONNECTED not in message.topics:
            # To ask the database would say so too, but only when it has not answered for many seconds.
            self.engine_failed(
                DatabaseUnavailable("The connection to the database was lost.", remedy="It is tried again.")
            )
            return
        if message.topics - APART:
            self.status_reader.soon()
        for pane in self._main.panes:
            if pane.topics & message.topics or RECONNECTED in message.topics:
                pane.changed()

    def on_status_read(self, message: StatusRead) -> None:
        """Show the status; an unreachable database leaves the last one and says so."""
        self.trouble = message.error
        if message.status is not None:
            self.status = message.status
        self._main.show_status()
        for pane in self.panes:
            pane.status_read()

    def on_flash(self, message: Flash) -> None:
        """One line in place of the hints."""
        self._main.flash(message.text, error=message.error)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that died of anything but an engine's error is a fault of ours: say it."""
        fault = event.worker.error
        if event.state is WorkerState.ERROR and fault is not None:
            _log.error("%s: %r", event.worker.description, fault, exc_info=fault)
            self._main.flash(f"Fault while trying to {event.worker.description}: {fault!r}", error=True)
            for pane in self.panes:
                if event.worker.group == pane.fetch_group:
                    pane.post_message(FetchFailed(NoctuaryError(f"{fault!r}", remedy="The log has more.")))

    def action_help_quit(self) -> None:
        """What ctrl+c does: tell which key quits."""
        self._main.flash(f"{self.keys.shown('app.quit')} quits")

    async def close_engine(self) -> None:
        """Close the engine, if it was opened, and open none any more; returns when it is closed."""
        if self._leaving is None:
            self._leaving = asyncio.create_task(self._close_engine())
        await asyncio.shield(self._leaving)

    async def _close_engine(self) -> None:
        opening = [worker for worker in self.workers if worker.group == "open"]
        gc.unfreeze()
        self.workers.cancel_all()
        await asyncio.gather(*(worker.wait() for worker in opening), return_exceptions=True)
        engine, self.engine = self.engine, None
        if engine is not None:
            await work.take_leave(self._main.active_pane.leaving(engine))
            await engine.close()

    async def on_unmount(self) -> None:
        """Leave nothing running."""
        await self.close_engine()
