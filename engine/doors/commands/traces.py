"""`noctuary traces`: what was asked of the notes, through which door, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.notes.traced import Trace, TraceKind
from engine.text.amounts import count

if TYPE_CHECKING:
    from engine import Engine


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most."
)
@click.option("--kind", type=click.Choice([str(kind) for kind in TraceKind]), help="Only searches or asks.")
@parameters.JSON
def traces(limit: int, kind: str | None, *, as_json: bool) -> int:
    """Show the last searches and asks, newest last."""

    async def work(engine: Engine) -> int:
        found = await engine.traces.recent(limit, TraceKind(kind) if kind else None)
        if as_json:
            output.dump({"traces": found})
            return exits.DONE
        if found:
            output.table([_cells(trace) for trace in reversed(found)])
        else:
            output.note("Nothing was asked yet." if engine.settings.traces else "NOCTUARY_TRACES is no.")
        return exits.DONE

    return session.run(work, application="noctuary traces")


def _cells(trace: Trace) -> tuple[str, ...]:
    at = f"{trace.at.astimezone():%Y-%m-%d %H:%M:%S}" if trace.at else ""
    return (
        at,
        str(trace.kind),
        trace.door.removeprefix("noctuary ").replace("noctuary", "console"),
        f"{trace.seconds * 1000:,.0f} ms",
        outcome(trace),
        trace.query,
    )


def outcome(trace: Trace) -> str:
    """What came of it, in a few words."""
    found = count(trace.citations, "citation")
    if trace.kind is TraceKind.SEARCH or not trace.citations:
        return found
    if trace.trouble:
        return f"{found}, no answer: {trace.trouble}"
    if not trace.answered:
        return f"{found}, no answer"
    spent = (trace.prompt_tokens or 0) + (trace.completion_tokens or 0)
    return f"{found}, answered ({count(spent, 'token')})"
