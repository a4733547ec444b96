"""The input for queries: it remembers what was asked, in this session and in those before."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.errors import SettingsError
from tui.history import History
from tui.messages import Flash
from tui.widgets.line_input import LineInput

if TYPE_CHECKING:
    from engine.settings import Paths

FILE = "search_history.jsonl"


class QueryInput(LineInput):
    """One line of text with the queries asked before behind it."""

    def __init__(self, placeholder: str, *, id: str) -> None:  # noqa: A002  (Textual's name)
        super().__init__(placeholder, id=id)
        self.history = History(None)
        self._walked: str | None = None

    async def load(self, paths: Paths) -> None:
        """Read the history off the loop; a worker's work. What cannot be read is said, and asking goes on."""
        history = History(None)
        try:
            history = History(await asyncio.to_thread(lambda: paths.state / FILE))
            await asyncio.to_thread(history.load)
        except (OSError, SettingsError) as error:
            self.post_message(Flash(f"The search history cannot be read: {error}", error=True))
        for query in self.history.entries:
            history.add(query)
        self.history = history

    def remember(self) -> bool:
        """Make the query the newest of the history; whether it has to be saved."""
        return self.history.add(self.value)

    async def save(self, query: str) -> None:
        """Append a query to the file off the loop; a worker's work."""
        try:
            await asyncio.to_thread(self.history.save, query)
        except OSError as error:
            self.post_message(Flash(f"The search history cannot be kept: {error}", error=True))

    def older(self) -> bool:
        """Put the query before the one shown; False when there is none."""
        if self.value != self._walked:
            self.history.rest()
        return self._put(self.history.older(self.value))

    def newer(self) -> bool:
        """Put the query after the one shown; False when no older one is shown."""
        if self.value != self._walked:
            self.history.rest()
        return self._put(self.history.newer())

    def _put(self, query: str | None) -> bool:
        if query is None:
            return False
        self.value = query
        self._walked = self.value
        self.cursor_position = len(self.value)
        return True
