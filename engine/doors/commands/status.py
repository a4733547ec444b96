"""`noctuary status` and `inbox`: the state of things, and what waits for a human."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.doors.finishing import duration, sentences, summary

if TYPE_CHECKING:
    from engine import Engine


@click.command()
@parameters.JSON
def status(*, as_json: bool) -> int:
    """Show the index, the queue and the embedding backlog."""

    async def work(engine: Engine) -> int:
        found = await engine.notes.status()
        if as_json:
            output.dump(summary(found))
        else:
            for line in sentences(found):
                output.say(line)
        return exits.DONE

    return session.run(work, application="noctuary status")


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
