"""`noctuary memory`: the turns that were kept last, and counts of what is in a brain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, remembering, session

if TYPE_CHECKING:
    from engine import Engine
    from engine.memory.model import PacketRow


@click.group(invoke_without_command=True)
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many turns at most."
)
@parameters.whose
@parameters.JSON
@click.pass_context
def memory(ctx: click.Context, limit: int, *, core: str | None, user: str | None, as_json: bool) -> int:
    """Show the turns that were kept last, newest first, or counts."""
    if ctx.invoked_subcommand is not None:
        return exits.DONE

    async def work(engine: Engine) -> int:
        rows = await engine.memory.recent(remembering.key(engine.settings, core, user), limit)
        if as_json:
            output.dump({"packets": rows})
        else:
            _print(rows)
        return exits.DONE if rows else exits.FOUND_NOTHING

    return session.run(work, application="noctuary memory")


def _print(rows: list[PacketRow]) -> None:
    if not rows:
        output.note("Nothing is kept here yet.")
    for row in rows:
        again = ", recalled text" if row.recalled else ""
        where = " ".join(f"{row.channel} {row.speaker}".split())
        output.say(f"{row.id}  {row.at.astimezone():%Y-%m-%d %H:%M}  {where} ({row.kind}{again})")
        output.say_text(output.indent(row.input))
        if row.response:
            output.say("  The answer was:")
            output.say_text(output.indent(row.response))


@memory.command()
@parameters.whose
@parameters.JSON
def metrics(*, core: str | None, user: str | None, as_json: bool) -> int:
    """Count what is in a brain."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        found = await engine.memory.metrics(remembering.key(engine.settings, core, user))
        told = output.plain(found)
        if as_json:
            output.dump(told)
        else:
            output.table([(name.replace("_", " "), _cell(value)) for name, value in told.items()])
        return exits.DONE

    return session.run(work, application="noctuary memory")


def _cell(value: object) -> str:
    if value is None:
        return "none"
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.2f}" if isinstance(value, float) else str(value)
    )
