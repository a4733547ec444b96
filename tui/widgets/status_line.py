"""The status line: watcher, queue, index, vectors, model, database.

It shows states, never a ticking clock: as long as nothing changes it is not painted. Each part is told by
a sign or a word, not by its colour.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from textual.content import Content

from engine.errors import DatabaseUnavailable, NoctuaryError
from engine.notes.model import EmbeddingProgress, NotesStatus, WatchMode, WatchState
from engine.text.amounts import count
from tui.text import line
from tui.widgets.label import Label

if TYPE_CHECKING:
    from collections.abc import Sequence

STALE = timedelta(seconds=60)
"""A watcher that gave no sign of life for so long is called silent: four of its beats were missed."""

WIDE = 100
"""From so many cells on, model and database are shown by name."""

SIGNS = {
    WatchMode.EVENTS: ("◉", ""),
    WatchMode.POLLING: ("◎", ""),
    WatchMode.ELSEWHERE: ("◌", ""),
    WatchMode.STARTING: ("…", ""),
    WatchMode.STOPPED: ("■", "$text-warning"),
    WatchMode.MISSING: ("✗", "$text-error"),
}


@dataclass(frozen=True, slots=True)
class Health:
    """Everything the status line says. `opening` is how far the start has come, empty once it is done."""

    opening: str = ""
    status: NotesStatus | None = None
    trouble: NoctuaryError | None = None
    database: str = ""


class StatusLine(Label):
    """One line on the health of everything."""

    def show(self, health: Health, now: datetime) -> None:
        """Draw it, at the width it has."""
        self.put(status_text(health, now, wide=self.size.width >= WIDE))


def status_text(health: Health, now: datetime, *, wide: bool) -> Content:
    """The line as text."""
    if health.opening and health.trouble is None:
        return line(f" … {health.opening}", "dim")
    parts = [*_notes(health.status, now, wide=wide), _database(health, wide=wide)]
    return Content(" ") + Content.styled(" │ ", "dim").join(parts)


def _notes(status: NotesStatus | None, now: datetime, *, wide: bool) -> list[Content]:
    if status is None:
        return []
    return [
        *_faults(status),
        _watching(status, now),
        _queue(status),
        line(count(status.index.files, "note") if status.index is not None else "… notes"),
        *_vectors(status, wide=wide),
    ]


def _faults(status: NotesStatus) -> list[Content]:
    """What fell stands first, where no narrow screen cuts it off."""
    if not status.faults:
        return []
    one = status.faults[0].service if len(status.faults) == 1 else count(len(status.faults), "service")
    return [line(f"✗ {one} down", "$text-error")]


def _watching(status: NotesStatus, now: datetime) -> Content:
    if not status.watchers and status.index is not None and status.index.folders:
        return Content.styled("■ not watched", "$text-warning")
    return watchers_text(status.watchers, now)


def watchers_text(watchers: Sequence[WatchState], now: datetime) -> Content:
    """The state of the watchers: one by its mode, several counted, silent ones named."""
    if not watchers:
        return Content.styled("no folder", "$text-warning")
    silent = [each for each in watchers if is_silent(each, now)]
    if silent:
        beats = [each.beat for each in silent if each.beat is not None]
        since = f" since {min(beats).astimezone():%H:%M}" if beats else ""
        return Content.styled(f"! watcher silent{since}", "$text-error")
    modes = Counter((SIGNS[each.mode], mode_words(each)) for each in watchers)
    parts = [
        (f"{sign} {words}" + (f" ×{many}" if many > 1 else ""), style)
        for ((sign, style), words), many in modes.items()
    ]
    return Content(" ").join(Content.styled(text, style) for text, style in parts)


def mode_words(watcher: WatchState) -> str:
    """How a folder is watched; elsewhere means by events unless it is said."""
    if watcher.holder in {None, WatchMode.EVENTS}:
        return str(watcher.mode)
    return f"{watcher.mode}, {watcher.holder}"


def is_silent(watcher: WatchState, now: datetime) -> bool:
    """Whether a watcher that should show signs of life has not done so for too long."""
    lives = watcher.mode in {WatchMode.EVENTS, WatchMode.POLLING, WatchMode.ELSEWHERE}
    return lives and watcher.beat is not None and now - watcher.beat > STALE


def _queue(status: NotesStatus) -> Content:
    jobs = status.jobs
    waiting = f"queue {jobs.pending + jobs.processing:,}"
    failed = (f" ✗ {jobs.failed:,}", "$text-error") if jobs.failed else ""
    return Content.assemble(waiting, failed)


def _vectors(status: NotesStatus, *, wide: bool) -> list[Content]:
    progress = status.embedding
    if progress is None:
        return [Content.styled("model …", "dim")]
    percent = progress.embedded * 100 // max(progress.total, 1)
    vectors = f"vectors {percent}%" if progress.pending else "vectors ✓"
    failed = (f" ✗ {progress.failed:,}", "$text-error") if progress.failed else ""
    return [Content.assemble(vectors, failed), _model(progress, wide=wide)]


def _model(progress: EmbeddingProgress, *, wide: bool) -> Content:
    """`✓` only after a vector was really made."""
    name = progress.model if wide else "model"
    if progress.trouble:
        return line(f"✗ {name} fails", "$text-error")
    if progress.serving:
        return line(f"{name} in the making, {progress.serving} answers" if wide else "model changing")
    if progress.suggestion:
        return line(f"! {name} hardly reads many notes" if wide else "! model reads few", "$text-warning")
    return line(f"{name} ✓") if progress.proven else line(f"{name} idle", "dim")


def _database(health: Health, *, wide: bool) -> Content:
    if isinstance(health.trouble, DatabaseUnavailable):
        return Content.styled("✗ database away, trying again" if wide else "✗ db away", "$text-error")
    if health.trouble is not None:
        return Content.styled(f"✗ {health.trouble.title.lower()}", "$text-error")
    return line(f"db {health.database}" if wide and health.database else "db ✓")
