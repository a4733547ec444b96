"""The console on the real engine with what a test needs to ask of it: a vault, keys, the screen as text."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import pytest

from engine import Engine
from tests.support import eventually
from tui import status_reader
from tui.app import NoctuaryApp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from pathlib import Path

    from textual.pilot import Pilot

    from engine.errors import NoctuaryError
    from engine.settings import Settings
    from tui.panes.base import Pane

P = TypeVar("P")

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
"""The present of tests that show ages."""

NOTES = {
    "birds/owl.md": "# Owls\n\nThe barn owl hunts at night.\n",
    "birds/robin.md": "# Robins\n\nThe robin sings before dawn.\n",
    "work/deploy.md": "# Deploying\n\nRun the migration first.\n",
}


def write(folder: Path, notes: Mapping[str, str | bytes]) -> Path:
    """Write notes into a folder, which is made."""
    for name, text in notes.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


class Desk:
    """The running app."""

    def __init__(self, pilot: Pilot[None], app: NoctuaryApp) -> None:
        self.pilot = pilot
        self.app = app

    @property
    def engine(self) -> Engine:
        assert self.app.engine is not None
        return self.app.engine

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def flash(self) -> str:
        """The last line."""
        return self.lines[-1]

    def pane(self, kind: type[P]) -> P:
        return next(pane for pane in self.app.panes if isinstance(pane, kind))

    @property
    def up(self) -> Pane[object]:
        assert self.app.active_pane is not None
        return self.app.active_pane

    async def settle(self) -> None:
        """Until nothing is under way and every message was handled."""
        for _ in range(2):
            await self.pilot.pause()
            await eventually(lambda: not self.app.busy)
        await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def type(self, text: str) -> None:
        await self.press(*text)

    async def until(self, predicate: Callable[[], object]) -> None:
        await eventually(predicate)
        await self.settle()

    async def execute(self, statement: str, parameters: Iterable[object] = ()) -> None:
        """One statement on the engine's database."""
        async with self.engine.database.connection() as connection:
            await connection.execute(statement.encode(), tuple(parameters))


async def _idle(*_args: object, **_options: object) -> list[NoctuaryError]:
    """Stands for the services of the engine."""
    return []


@asynccontextmanager
async def desk(
    settings: Settings,
    folder: Path | None = None,
    *,
    size: tuple[int, int] = (80, 24),
    live: bool = False,
    asked: bool = False,
    now: Callable[[], datetime] | None = None,
) -> AsyncIterator[Desk]:
    """The app on the real engine. Its services run only when `live`: without them a test decides what is done.

    Without a folder the app asks for one; the dialog is closed unless the test is about it (`asked`).
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(status_reader, "PAUSE_SECONDS", 0.05)  # it only spares the database
        if not live:
            patch.setattr(Engine, "start", _idle)
        app = NoctuaryApp(settings, folder) if now is None else NoctuaryApp(settings, folder, now=now)
        async with app.run_test(size=size) as pilot:
            opened = Desk(pilot, app)
            await eventually(lambda: app.engine is not None)
            await opened.settle()
            if folder is None and not asked:
                await opened.press("escape")
            yield opened


FOLDER = "INSERT INTO folder (path, device) VALUES ('/vault', 0) ON CONFLICT DO NOTHING"
JOBS = """
    INSERT INTO job (kind, folder, path, priority, status, attempts, error, created_at, started_at, finished_at)
    SELECT 'ingest_path', folder.id, 'notes/' || to_char(n, 'FM00000') || '.md', n,
        CASE WHEN n %% 10 = 0 THEN 'failed' WHEN n %% 10 = 1 THEN 'pending' ELSE 'done' END,
        CASE WHEN n %% 10 = 1 THEN 0 ELSE 1 END,
        CASE WHEN n %% 10 = 0 THEN 'The note is encoded as UTF-16, not UTF-8. Save it as UTF-8.' END,
        %s::timestamptz - n * interval '1 minute',
        CASE WHEN n %% 10 <> 1 THEN %s::timestamptz - n * interval '1 minute' END,
        CASE WHEN n %% 10 <> 1 THEN %s::timestamptz - n * interval '1 minute' END
    FROM folder, generate_series(1, %s) AS n WHERE folder.path = '/vault' ORDER BY n DESC
"""


async def fill_queue(desk: Desk, jobs: int) -> None:
    """A folder that is not on the disk, with a queue of jobs: one in ten failed, one in ten waits."""
    await desk.execute(FOLDER)
    await desk.execute(JOBS, (NOON, NOON, NOON, jobs))
    await desk.settle()
