"""The embedding backlog as a line of text: a bar that needs no colour, figures, and the time left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content

from engine.text.amounts import count, duration
from tui.text import cut, line, plain

if TYPE_CHECKING:
    from engine.notes.model import EmbeddingProgress

BAR = 20
"""Cells of the bar: 5 % each."""


def bar(done: int, total: int, width: int = BAR) -> str:
    """`█████░░░░░`: full only when all is done, empty only when nothing is."""
    if total <= 0:
        return "░" * width
    full = done * width // total
    if done and not full:
        full = 1
    return "█" * full + "░" * (width - full)


def embedding_line(progress: EmbeddingProgress | None, room: int) -> Content:
    """The line of the Jobs pane, in `room` cells while the model is being changed."""
    if progress is None:
        return Content.styled("Embedding: the model is not loaded yet", "dim")
    failed = (
        (f" · ✗ {progress.failed:,} could not be embedded", "$text-error") if progress.failed else ("", "")
    )
    if progress.trouble:
        return Content.assemble((f"✗ {plain(progress.trouble)}", "$text-error"), failed)
    if progress.serving:
        return _change(progress, room)
    if not progress.total:
        return line(f"Embedding: no passages yet ({progress.model})", "dim")
    if not progress.pending:
        have = count(progress.embedded, "passage has its vector", "passages have their vectors")
        done = line(f"Embedding: {have} ({progress.model})", "dim")
        return Content.assemble(done, failed)
    left = _left(progress)
    rate = f" · {progress.rate:,.0f}/s" if progress.rate else ""
    percent = progress.embedded * 100 // max(progress.total, 1)
    return Content.assemble(
        "Embedding ",
        (bar(progress.embedded, progress.total), "$text-primary"),
        f" {percent}% {progress.embedded:,} of {progress.total:,}{rate}{left}",
        failed,
    )


def _left(progress: EmbeddingProgress) -> str:
    return f" · {duration(progress.seconds_left)} left" if progress.seconds_left is not None else ""


def _change(progress: EmbeddingProgress, room: int) -> Content:
    """How far the model in the making is and which one answers: their names share what the figures leave."""
    done = f" {progress.embedded:,} of {progress.total:,}" if progress.total else " has no vectors yet"
    failed = f" ✗ {progress.failed:,}" if progress.failed else ""
    answers = " answers meanwhile"
    left = room - cell_len(done + failed + _left(progress) + answers) - len(" · ")
    making, serving = plain(progress.model), plain(progress.serving)
    half = left // 2
    making = cut(making, max(half, left - cell_len(serving)))
    return Content.assemble(
        (making, "$text-primary"),
        done,
        (failed, "$text-error"),
        f"{_left(progress)} · {cut(serving, left - cell_len(making))}{answers}",
    )
