"""Long work made visible: a bar on a terminal, now and then a plain line elsewhere.

Both go to standard error, so that the output of a command can be piped or parsed.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

import click

from engine.doors import output, streams
from engine.text.amounts import MINUTE, count, duration
from engine.text.safe import visible

if TYPE_CHECKING:
    from types import TracebackType

    from click._termui_impl import ProgressBar

    from engine.notes.evaluated import EvalStep
    from engine.notes.model import CompareStep, JobCounts, NotesStatus, PullProgress

LINE_SECONDS = 5.0
"""Plain lines come no closer than this: a log should not fill with them."""

FITTING = 0
"""click's word for a bar as wide as the terminal leaves room for."""

LABEL = 30
"""Characters of what is fetched: the name of a layer is sixty, and tells nobody anything."""

FILES = "Indexing files"
PASSAGES = "Embedding passages"


class Bar:
    """A bar on a terminal, and when to write a line elsewhere; a context manager that takes the bar away."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._bar: ProgressBar[int] | None = None
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_bar()

    def _line_is_due(self) -> bool:
        now = time.monotonic()
        due = now - self._said >= LINE_SECONDS
        if due:
            self._said = now
        return due

    def _close_bar(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


class Phases(Bar):
    """A bar a phase of the work, for things that are counted."""

    def __init__(self) -> None:
        super().__init__()
        self._phase = ""

    def _show(self, phase: str, done: int, total: int) -> None:
        if self._terminal:
            self._draw(phase, done, total)
        elif self._line_is_due():
            output.note(f"{phase}: {done:,} of {total:,}")
        self._phase = phase

    def _draw(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self._close_bar()
            label = visible(phase, keep_newlines=False)
            self._bar = click.progressbar(
                length=total, label=label, show_pos=True, width=FITTING, file=streams.drawing()
            )
            self._bar.__enter__()
            self._bar.pos = done
        if self._bar is not None:
            self._bar.length = total
            self._bar.update(max(0, done - self._bar.pos))


class Progress(Phases):
    """A callback for `Notes.work_until_idle`; use it as a context manager.

    Call it once before the work begins: what is finished then is not counted as done now.
    """

    def __init__(self, *, embed: bool) -> None:
        super().__init__()
        self._embed = embed
        self._finished_before: int | None = None

    def __call__(self, status: NotesStatus) -> None:
        """Show how far the work is: files first, then their vectors."""
        self._files(status.jobs)
        embedding = status.embedding
        busy = status.jobs.pending + status.jobs.processing
        if (
            self._embed
            and embedding is not None
            and not busy
            and (embedding.pending or self._phase == PASSAGES)
        ):
            self._show(PASSAGES, embedding.embedded, embedding.embedded + embedding.pending)

    def _files(self, jobs: JobCounts) -> None:
        finished = jobs.done + jobs.failed
        if self._finished_before is None:
            self._finished_before = finished
        left = jobs.pending + jobs.processing
        done = max(0, finished - self._finished_before)
        if left or self._phase == FILES:
            self._show(FILES, done, done + left)


class CompareBar(Phases):
    """How far a comparison of models is. What takes long is said before: how much it is, and how long."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[tuple[str, bool]] = set()

    def __call__(self, step: CompareStep) -> None:
        """Show the next step."""
        if not step.embedding:
            self._show(f"Asking {step.name}", step.done, step.total)
            return
        if self._first(step.name, timed=False):
            missing = f"{step.total - step.done:,} of {count(step.total, 'passage')}"
            self._say(f"Vectors of {step.name} are missing for {missing}: they are made first.")
        left = step.seconds_left
        if left is not None and self._first(step.name, timed=True) and left > MINUTE:
            self._say(f"That takes about {duration(left)}. Ctrl-C stops; what is made by then is kept.")
        self._show(f"Embedding for {step.name}", step.done, step.total)

    def _first(self, name: str, *, timed: bool) -> bool:
        new = (name, timed) not in self._told
        self._told.add((name, timed))
        return new

    def _say(self, sentence: str) -> None:
        self._close_bar()
        self._phase = ""
        output.note(sentence)


class EvalBar(Phases):
    """How far an eval is."""

    def __call__(self, step: EvalStep) -> None:
        """Show the next step."""
        self._show("Asking questions", step.done, step.total)


class PullBar(Bar):
    """How far the fetching of a model is: a bar a file on a terminal, now and then a plain line elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._status = ""

    def __call__(self, part: PullProgress) -> None:
        """Show a sign of life of the server."""
        new = part.status != self._status
        self._status = part.status
        if self._terminal:
            self._draw(part, new=new)
        elif (new and not part.total) or self._line_is_due():
            of = f": {part.completed or 0:,} of {part.total:,} bytes" if part.total else ""
            output.note(f"{part.status}{of}")

    def _draw(self, part: PullProgress, *, new: bool) -> None:
        if new:
            self._close_bar()
        if not part.total:
            if new:
                output.note(part.status)
            return
        if self._bar is None:
            label = visible(part.status, keep_newlines=False)
            self._bar = click.progressbar(
                length=part.total, label=label[:LABEL], width=FITTING, file=streams.drawing()
            )
            self._bar.__enter__()
        self._bar.length = part.total
        self._bar.update(max(0, (part.completed or 0) - self._bar.pos))
