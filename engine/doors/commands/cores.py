"""`noctuary cores`: the isolated parts of memory. A person makes them here; no request ever does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.memory.model import LOCAL

if TYPE_CHECKING:
    from engine import Engine

ACCOUNT = click.option(
    "--account",
    type=parameters.TEXT,
    default=LOCAL,
    show_default=True,
    help="Whose it is: an account of NOCTUARY_API_KEYS.",
)


@click.group(invoke_without_command=True)
@ACCOUNT
@parameters.JSON
@click.pass_context
def cores(ctx: click.Context, account: str, *, as_json: bool) -> int:
    """List the cores of memory, or add one."""
    if ctx.invoked_subcommand is not None:
        return exits.DONE
    return session.run(lambda engine: _list(engine, account, as_json=as_json), application="noctuary cores")


async def _list(engine: Engine, account: str, *, as_json: bool) -> int:
    found = await engine.memory.cores(account)
    if as_json:
        output.dump({"cores": found})
    elif found:
        output.table([(each.slug, each.name, "the default one" if each.is_default else "") for each in found])
    else:
        output.note(f"The account {account} has no core yet. `noctuary cores add` makes one.")
    return exits.DONE if found else exits.FOUND_NOTHING


@cores.command()
@click.argument("slug", type=parameters.TEXT)
@click.option("--name", type=parameters.TEXT, help="What people call it. Without it as the slug.")
@ACCOUNT
@parameters.JSON
def add(slug: str, *, name: str | None, account: str, as_json: bool) -> int:
    """Make a core: a memory of its own. The first one of an account is its default."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        made = await engine.memory.add_core(slug, name, account)
        if as_json:
            output.dump(made)
        else:
            output.say(f"The core {made.slug} is made{' and is the default one' if made.is_default else ''}.")
        return exits.DONE

    return session.run(work, application="noctuary cores")
