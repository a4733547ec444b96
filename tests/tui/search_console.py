"""The console on a small indexed vault, opened at the search pane, for the tests of that pane."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from engine import Engine
from tests.support import eventually
from tui.app import NoctuaryApp
from tui.panes.search import SearchPane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from textual.pilot import Pilot

    from engine.errors import NoctuaryError
    from engine.notes.model import Citation
    from engine.settings import Settings

NOTES = {
    "birds/owl.md": "# Owls\n\nThe barn owl hunts at night.\nIt hears a mouse under the snow.\n",
    "birds/robin.md": "# Robins\n\nThe robin sings before dawn.\n",
    "work/deploy.md": "# Deploying\n\nRun the migration first.\n\n## Rollback\n\nKeep the owl mascot on the page.\n",
    "work/meeting.md": "# Meeting\n\nWe spoke of the database and its indexes.\n",
}


def write(folder: Path, notes: dict[str, str]) -> Path:
    """Write notes into a folder, which is made."""
    for name, text in notes.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


class Console:
    """The running app and its search pane, with what the tests ask of them."""

    def __init__(self, pilot: Pilot[None], app: NoctuaryApp) -> None:
        self.pilot = pilot
        self.app = app
        self.pane = next(pane for pane in app.panes if isinstance(pane, SearchPane))

    @property
    def engine(self) -> Engine:
        """The engine, which is open."""
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
    def references(self) -> list[str]:
        return [citation.reference for citation in self.pane.list.citations]

    @property
    def current(self) -> Citation:
        citation = self.pane.list.current
        assert citation is not None
        return citation

    async def settle(self) -> None:
        """Until nothing is under way: no worker, no timer, no message."""
        pane = self.pane

        def still() -> bool:
            return not self.app.busy and pane._typing is None and pane._resting is None

        await eventually(still)
        await self.pilot.pause()
        await eventually(still)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type into what has the focus and wait for the answer."""
        await self.pilot.press(*text)
        await self.settle()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def shows(self, text: str) -> None:
        """Wait until the screen shows this."""
        await eventually(lambda: text in self.text)


async def _idle(*_args: object, **_options: object) -> list[NoctuaryError]:
    """Stands for the services of the engine."""
    return []


@asynccontextmanager
async def console(
    settings: Settings, folder: Path, *, size: tuple[int, int] = (80, 24), live: bool = False
) -> AsyncIterator[Console]:
    """The app on an indexed folder, the search pane up and its input focused.

    The services that follow the disk run only when `live`: without them a file can be newer than its index.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not live:
            patch.setattr(Engine, "start", _idle)
        app = NoctuaryApp(settings, folder)
        async with app.run_test(size=size) as pilot:
            opened = Console(pilot, app)
            await eventually(lambda: app.engine is not None)
            await eventually(lambda: not app.busy)
            await opened.engine.notes.index_all()
            await opened.engine.notes.work_until_idle()
            await opened.press("2")
            yield opened
