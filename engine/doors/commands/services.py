"""`noctuary watch` and `worker`: what the console does in the background, without the console."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from engine.doors import crew, exits, jsonlog, parameters, session
from engine.doors.finishing import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine import Engine
    from engine.notes.model import NotesStatus

MOST_PROCESSES = 64

PAUSE_SECONDS = 1.0
"""A burst of changes is told as one line."""

SWITCH_SECONDS = 0.001
"""Python's own 5 ms are what a worker that writes waits for the one of its threads that chunks, again and
again, while it holds up all other writers."""

ADD = "one that `noctuary folders add FOLDER` adds is watched at once."

AS_TEXT = click.option("--text", "as_text", is_flag=True, help="Tell it in lines for people, not in JSON.")


@click.command()
@click.option("--path", type=parameters.PATH, help="Add this folder of notes first.")
@click.option("--work/--no-work", default=True, show_default=True, help="Index too, or only queue jobs.")
@parameters.JSON
@AS_TEXT
def watch(path: Path | None, *, work: bool, as_json: bool, as_text: bool) -> int:
    """Keep the index true to the disk until stopped.

    Changes are noticed, queued, indexed and embedded. What happens is told on standard output, as one line of
    JSON for each record of the log.
    """
    as_text = form(as_json=as_json, as_text=as_text)

    async def follow(engine: Engine) -> int:
        if path is not None:
            await engine.notes.add_folder(path)
        return await _serve(engine, watch=True, work=work, embed=work, as_text=as_text)

    return session.run(follow, application="noctuary watch")


@click.command()
@click.option(
    "--concurrency",
    type=click.IntRange(1, MOST_PROCESSES),
    default=1,
    show_default=True,
    help="Processes that index words at once.",
)
@click.option("--embed/--no-embed", default=True, show_default=True, help="Make vectors too, or words only.")
@click.option("--attached", is_flag=True, hidden=True, help="End when standard input does.")
@parameters.JSON
@AS_TEXT
def worker(*, concurrency: int, embed: bool, attached: bool, as_json: bool, as_text: bool) -> int:
    """Work off the queue until stopped.

    Several may run, on several machines; each takes its own jobs. Words of a folder are indexed where it can
    be reached, vectors are made anywhere. What happens is told as by `noctuary watch`.
    """
    as_text = form(as_json=as_json, as_text=as_text)

    async def follow(engine: Engine) -> int:
        sys.setswitchinterval(SWITCH_SECONDS)
        if attached:  # what it does is told by the process that started it
            await engine.start(watch=False, work=True, embed=embed)
            await crew.until_left()
            return exits.DONE
        crew.hire(engine, concurrency - 1)
        return await _serve(engine, watch=False, work=True, embed=embed, as_text=as_text)

    return session.run(follow, application="noctuary worker")


def form(*, as_json: bool, as_text: bool) -> bool:
    """Whether lines are for people; JSON needs not be asked for."""
    if as_json and as_text:
        raise click.UsageError("--json and --text exclude each other.", click.get_current_context())
    return as_text


async def _serve(engine: Engine, *, watch: bool, work: bool, embed: bool, as_text: bool) -> int:
    """Run the services and tell what happens; ends only by a signal."""
    source = "watch" if watch else "worker"
    async with jsonlog.to_stdout(engine, as_text=as_text) as lines:
        await engine.start(watch=watch, work=work, embed=embed)
        watched = [folder.path for folder in await engine.notes.folders()] if watch else None
        lines.say(_begin(watched, work=work), source, watching=watched, working=work)
        shown: NotesStatus | None = None
        async for _change in engine.subscribe("job", "embedding"):
            status = await engine.notes.status()
            if shown is None or (status.jobs, status.index) != (shown.jobs, shown.index):
                figures = {"jobs": status.jobs, "index": status.index, "embedding": status.embedding}
                lines.say(" ".join(sentences(status)), source, **figures)
                shown = status
            await asyncio.sleep(PAUSE_SECONDS)
    return exits.DONE


def _begin(folders: Sequence[Path] | None, *, work: bool) -> str:
    """The first line: what is done from now on. `folders` are those watched, None when none shall be."""
    parts = []
    if folders is not None:
        names = ", ".join(str(path) for path in folders)
        parts.append(f"Watching {names}." if names else f"No folder of notes yet; {ADD}")
    parts.append("Working off the queue." if work else "Jobs are only queued.")
    return " ".join([*parts, "Ctrl+C ends it."])
