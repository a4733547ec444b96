"""The application: opens the engine behind the first paint, and carries news between it and the panes.

It holds what is global (engine, keymap, clock, status) and nothing of any pane.
"""

from __future__ import annotations

import asyncio
import importlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import App
from textual.worker import Worker, WorkerState

from engine.errors import DatabaseUnavailable, NoctuaryError
from tui.keymap import Keymap
from tui.live import RECONNECTED, REDUCED_REPAINTS, REPAINTS, follow
from tui.messages import Changed, EngineFailed, EngineReady, Flash, Opening, StatusRead
from tui.screens.main import MainScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from textual.binding import BindingType

    from engine import Engine
    from engine.notes.model import NotesStatus
    from engine.settings import Settings
    from tui.panes.base import Pane

TOPICS = ("folder", "file", "job", "embedding", "notice")
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
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(
        self, settings: Settings, folder: Path | None = None, *, now: Callable[[], datetime] = _now
    ) -> None:
        self.keys = Keymap(settings.keys)
        super().__init__()
        self.settings = settings
        self.folder = folder
        self.now = now
        self.engine: Engine | None = None
        self.status: NotesStatus | None = None
        self.trouble: NoctuaryError | None = None
        self.opening = "starting"
        self._main = MainScreen()
        self._status_wanted = False
        self.set_keymap(self.keys.overrides)

    def get_default_screen(self) -> MainScreen:
        """The screen with the panes."""
        return self._main

    @property
    def active_pane(self) -> Pane[Any] | None:
        """The pane that is up."""
        return self._main.active_pane

    @property
    def busy(self) -> bool:
        """Whether anything is under way that will change the screen; tests wait until it is not."""
        opening = self.engine is None and self.trouble is None
        return opening or any(not w.is_finished for w in self.workers if w.group != BACKGROUND)

    def spawn(self, work: Coroutine[Any, Any, None], group: str, description: str) -> Worker[None]:
        """Run a worker; one of a group at a time, the newer cancels the older."""
        return self.run_worker(
            work, name=group, group=group, description=description, exclusive=True, exit_on_error=False
        )

    # Opening the engine ------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Paint first, then open the engine."""
        self.call_after_refresh(self.open_engine)

    def open_engine(self) -> None:
        """Open the engine in a worker."""
        self.trouble = None
        self.spawn(self._open_engine(), "open", "open the database")

    async def _open_engine(self) -> None:
        module = await asyncio.to_thread(importlib.import_module, "engine")
        try:
            engine: Engine = await module.Engine.open(
                self.settings, application="noctuary", on_state=lambda text: self.post_message(Opening(text))
            )
        except NoctuaryError as error:
            self.post_message(EngineFailed(error))
        else:
            self.post_message(EngineReady(engine))

    def on_opening(self, message: Opening) -> None:
        """Say how far opening has come."""
        self.opening = message.text
        self._main.show_status()

    def on_engine_ready(self, message: EngineReady) -> None:
        """The database is open: show what it holds, listen, and start the services behind it."""
        engine = self.engine = message.engine
        rate = REDUCED_REPAINTS if self.settings.reduced_repaint else REPAINTS
        self.run_worker(
            follow(self, engine.subscribe(*TOPICS), rate),
            group=BACKGROUND,
            description="follow changes",
            exit_on_error=False,
        )
        self.spawn(self._start(engine), "start", "start watching")
        self.read_status()
        self._main.engine_ready()

    async def _start(self, engine: Engine) -> None:
        try:
            if self.folder is not None:
                await engine.notes.add_folder(self.folder)
            await engine.start()
        except NoctuaryError as error:
            self.post_message(Flash(f"{error.title}: {error}", error=True))

    def on_engine_failed(self, message: EngineFailed) -> None:
        """Opening failed: try again when the server is only away, else say what is wrong."""
        self.engine_failed(message.error)
        if isinstance(message.error, DatabaseUnavailable):
            self.set_timer(RETRY_SECONDS, self.open_engine)
        else:
            self._main.show_error(message.error)

    def engine_failed(self, error: NoctuaryError) -> None:
        """The engine did not answer; a database that is away is said in the status line."""
        self.trouble = error
        self._main.show_status()

    # News of the engine ------------------------------------------------------------------------

    def on_changed(self, message: Changed) -> None:
        """Rows changed: the status line and the panes they belong to read again."""
        self.read_status()
        for pane in self._main.panes:
            if pane.topics & message.topics or RECONNECTED in message.topics:
                pane.changed()

    def read_status(self) -> None:
        """Read the status of the notes; a read under way is followed by one more."""
        if self.engine is None:
            return
        if any(w.group == "status" and not w.is_finished for w in self.workers):
            self._status_wanted = True
            return
        self._status_wanted = False
        self.spawn(self._read_status(self.engine), "status", "read the status")

    async def _read_status(self, engine: Engine) -> None:
        try:
            status = await engine.notes.status()
        except NoctuaryError as error:
            self.post_message(StatusRead(None, error))
        else:
            self.post_message(StatusRead(status))

    def on_status_read(self, message: StatusRead) -> None:
        """Show the status; an unreachable database leaves the last one and says so."""
        self.trouble = message.error
        if message.status is not None:
            self.status = message.status
        self._main.show_status()
        if self._status_wanted:
            self.call_later(self.read_status)

    def on_flash(self, message: Flash) -> None:
        """One line in place of the hints."""
        self._main.flash(message.text, error=message.error)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that died of anything but an engine's error is a fault of ours: say it."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            fault = event.worker.error
            self._main.flash(f"Fault while trying to {event.worker.description}: {fault!r}", error=True)

    def action_help_quit(self) -> None:
        """What ctrl+c does: tell which key quits."""
        self._main.flash(f"{self.keys.shown('app.quit')} quits")

    async def close_engine(self) -> None:
        """Close the engine, if it was opened."""
        engine, self.engine = self.engine, None
        if engine is not None:
            self.workers.cancel_all()
            await engine.close()

    async def on_unmount(self) -> None:
        """Leave nothing running."""
        await self.close_engine()


async def run(settings: Settings, folder: Path | None = None) -> int:
    """Run the console until it is quit; the exit status.

    Raises:
        SettingsError: the keys of the settings cannot be used.
    """
    app = NoctuaryApp(settings, folder)
    await app.run_async()
    return app.return_code or 0
