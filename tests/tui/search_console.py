"""The console on a small indexed vault, opened at the search pane, for the tests of that pane."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.support import eventually
from tests.tui.desk import Desk, desk, write
from tui.panes.search import SearchPane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.notes.model import Citation
    from engine.settings import Settings

__all__ = ["NOTES", "Console", "console", "write"]

NOTES = {
    "birds/owl.md": "# Owls\n\nThe barn owl hunts at night.\nIt hears a mouse under the snow.\n",
    "birds/robin.md": "# Robins\n\nThe robin sings before dawn.\n",
    "work/deploy.md": "# Deploying\n\nRun the migration first.\n\n## Rollback\n\nKeep the owl mascot on the page.\n",
    "work/meeting.md": "# Meeting\n\nWe spoke of the database and its indexes.\n",
}


class Console(Desk):
    """The running app with what the tests ask of its search pane, which is `pane`."""

    @property
    def pane(self) -> SearchPane:
        return next(pane for pane in self.app.panes if isinstance(pane, SearchPane))

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

    async def shows(self, text: str) -> None:
        """Wait until the screen shows this."""
        await eventually(lambda: text in self.text)


@asynccontextmanager
async def console(
    settings: Settings, folder: Path, *, size: tuple[int, int] = (80, 24), live: bool = False
) -> AsyncIterator[Console]:
    """The app on an indexed folder, the search pane up and its input focused.

    The services that follow the disk run only when `live`: without them a file can be newer than its index.
    """
    async with desk(settings, folder, size=size, live=live) as begun:
        opened = Console(begun.pilot, begun.app)
        await opened.engine.notes.index_all()
        await opened.engine.notes.work_until_idle()
        await opened.press("2")
        yield opened
