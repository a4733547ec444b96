"""`noctuary tokens`: what language models read and wrote, by day and purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session

if TYPE_CHECKING:
    from engine import Engine
    from engine.language import LedgerRow


@click.command()
@click.option(
    "--days", type=click.IntRange(1, 3660), default=30, show_default=True, help="How many days, with today."
)
@parameters.JSON
def tokens(days: int, *, as_json: bool) -> int:
    """Show what language models read and wrote, and what is left of today's limit."""

    async def work(engine: Engine) -> int:
        rows = await engine.language.ledger(days=days)
        spent, limit = await engine.language.spent_today(), engine.language.limit
        if as_json:
            output.dump({"spent_today": spent, "daily_limit": limit or None, "ledger": rows})
            return exits.DONE
        if rows:
            output.table([HEAD, *map(_cells, rows)])
        of = f" of {limit:,}" if limit else ""
        output.say(f"Today {spent:,}{of} tokens.")
        if not engine.language.provider:
            output.note(engine.language.why_not)
        return exits.DONE

    return session.run(work, application="noctuary tokens")


HEAD = ("day", "purpose", "model", "calls", "failed", "read", "written")


def _cells(row: LedgerRow) -> tuple[str, ...]:
    about = "about " if row.estimated else ""
    return (
        f"{row.day:%Y-%m-%d}",
        row.purpose,
        f"{row.provider}/{row.model}",
        f"{row.calls:,}",
        f"{row.failed:,}",
        f"{about}{row.prompt_tokens:,}",
        f"{about}{row.completion_tokens:,}",
    )
