"""`noctuary status` and `inbox`: the state of things, and what waits for a human."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.doors.finishing import sentences, summary
from engine.text.amounts import duration

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from engine.notes.model import NotesStatus

SILENT_SECONDS = 60
"""A watcher that gave no sign of life for so long is none: four of its beats were missed."""


@click.command()
@parameters.JSON
def status(*, as_json: bool) -> int:
    """Show the index, the queue, the embedding backlog and who watches the folders."""

    async def work(engine: Engine) -> int:
        await engine.notes.embedders.judge()
        found = await engine.notes.status()
        if as_json:
            output.dump(summary(found))
        else:
            for line in sentences(found):
                output.say(line)
            for folder in await engine.notes.folders():
                output.say(_watching(folder.path, found))
        return exits.DONE

    return session.run(work, application="noctuary status")


def _watching(folder: Path, found: NotesStatus) -> str:
    """Who watches a folder, how, and when it last gave a sign of life."""
    watcher = next((each for each in found.watchers if each.folder == folder), None)
    if watcher is None or watcher.beat is None:
        return f"{folder}: not watched."
    ago = (datetime.now(UTC) - watcher.beat).total_seconds()
    if ago > SILENT_SECONDS:
        return f"{folder}: not watched; {watcher.process} was silent for {duration(ago)}."
    reason = f" ({watcher.reason})" if watcher.reason else ""
    mode = watcher.holder or watcher.mode
    return f"{folder}: {mode}{reason} by {watcher.process}, sign of life {duration(max(0.0, ago))} ago."


@click.command()
@parameters.JSON
def inbox(*, as_json: bool) -> int:
    """List what waits for a human, with counts and the oldest age."""

    async def work(engine: Engine) -> int:
        await engine.notes.drift()  # what differs from the disk waits for a human too
        items = await engine.inbox.items()
        if as_json:
            output.dump({"items": items})
        elif not items:
            output.say("Nothing waits for you.")
        else:
            output.table([(f"{item.count:,}", item.title, _age(item.oldest)) for item in items])
        return exits.DONE

    return session.run(work, application="noctuary inbox")


def _age(since: datetime | None) -> str:
    if since is None:
        return ""
    return f"oldest {duration(max(0.0, (datetime.now(UTC) - since).total_seconds()))}"
