"""The question of a command that searches, what narrows it, and what is said where nothing is found."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.doors import output, parameters
from engine.notes.model import MOST_CITATIONS, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine import Engine
    from engine.notes.answered import SearchOptions
    from engine.notes.model import Citation, Freshness

F = TypeVar("F", bound="Callable[..., Any]")


def _mode(_context: click.Context, _parameter: click.Parameter, value: str) -> Mode:
    return Mode(value)


OPTIONS = (
    click.option("--k", "k", type=click.IntRange(1, MOST_CITATIONS), help="How many citations at most."),
    click.option(
        "--path",
        "path_glob",
        type=parameters.TEXT,
        metavar="GLOB",
        help="Only files whose path matches, as in 'work/**/*.md'.",
    ),
    click.option("--folder", type=parameters.PATH, help="Only this folder of notes."),
    click.option(
        "--heading", type=parameters.TEXT, metavar="TEXT", help="Only below a heading that contains this."
    ),
    click.option(
        "--mode",
        type=click.Choice([str(mode) for mode in Mode]),
        default=str(Mode.HYBRID),
        show_default=True,
        callback=_mode,
        help="Search by words, by meaning, or by both.",
    ),
    click.option(
        "--max-distance",
        type=click.FloatRange(0, 2),
        help="The largest cosine distance that still answers; 0 is the same, 2 the opposite.",
    ),
)


def options(command: F) -> F:
    """Give a command the options of a search; they arrive as `SearchOptions`."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def question(words: Sequence[str]) -> str:
    """The words of the command line as one question.

    Raises:
        click.UsageError: there is nothing in them.
    """
    asked = " ".join(words)
    if not asked.strip():
        raise click.UsageError("The query is empty.", click.get_current_context())
    return asked


async def checked(engine: Engine, citations: Sequence[Citation]) -> list[tuple[Citation, Freshness]]:
    """The citations, each with what the disk says of it now."""
    fresh = await asyncio.gather(*map(engine.notes.freshness, citations))
    return list(zip(citations, fresh, strict=True))


async def explain_nothing(engine: Engine, narrowed: SearchOptions, *, path_matches: bool) -> None:
    """Say on standard error why nothing could be found, where that is known."""
    if sentence := await why_nothing(engine, narrowed, path_matches=path_matches):
        output.note(sentence)


async def why_nothing(
    engine: Engine, narrowed: SearchOptions, *, path_matches: bool, name: str = "--path"
) -> str:
    """Why nothing could be found, where that is known. `name` is what the path pattern is called."""
    if not await engine.notes.folders():
        return "No folder of notes yet. `noctuary index FOLDER` reads one."
    if path_matches:
        return ""
    folder = narrowed.get("folder")
    inside = f" in {folder}" if folder is not None else ""
    return (
        f"No indexed file{inside} matches {name} {narrowed.get('path_glob')!r}. "
        "The pattern is of paths within a folder of notes, as in 'work/**/*.md'."
    )
