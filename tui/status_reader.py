"""When the status of the notes is read: seldom while rows change, and exactly once they have come to rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui import work

if TYPE_CHECKING:
    from textual.timer import Timer

    from tui.app import NoctuaryApp

PAUSE_SECONDS = 1.0
"""Between two readings while rows change: each counts the index."""

GROUP = "status"


class StatusReader:
    """Reads the status for the app, in workers of its own group."""

    def __init__(self, app: NoctuaryApp) -> None:
        self._app = app
        self._timer: Timer | None = None
        self._again = False

    @property
    def waiting(self) -> bool:
        """Whether a reading is due."""
        return self._timer is not None

    def now(self, *, exact: bool = False) -> None:
        """Read; a reading under way is let finish and followed by one more."""
        app = self._app
        if any(worker.group == GROUP and not worker.is_finished for worker in app.workers):
            self.soon()
        elif app.engine is not None:
            app.spawn(work.read_status(app.engine, app.post_message, exact=exact), GROUP, "read the status")

    def soon(self) -> None:
        """Read for many changes once, and after the last of them once more, exactly."""
        self._again = self._timer is not None
        if self._timer is None:
            self._timer = self._app.set_timer(PAUSE_SECONDS, self._due)

    def _due(self) -> None:
        self._timer = None
        again, self._again = self._again, False
        self.now(exact=not again)
        if again:
            self.soon()
