"""`noctuary service`: `watch` and `worker` as services of the user, by systemd."""

from __future__ import annotations

import os

import click

from engine import systemd
from engine.doors import exits, output, parameters
from engine.settings import Settings


@click.group(invoke_without_command=True)
@parameters.JSON
@click.pass_context
def service(ctx: click.Context, *, as_json: bool) -> int:
    """Keep `watch` and `worker` running by systemd, from login on; by itself it tells whether they do."""
    return exits.DONE if ctx.invoked_subcommand is not None else _tell(as_json=as_json)


@service.command()
@click.argument("names", nargs=-1, type=click.Choice(list(systemd.UNITS)))
@parameters.JSON
def install(names: tuple[str, ...], *, as_json: bool) -> int:
    """Write the units and start them: `watch`, which indexes too, unless others are named.

    Settings that only the environment holds are written into the units, which the user alone may read.
    """
    as_json = parameters.json_wanted(as_json=as_json)
    units = [systemd.UNITS[name] for name in dict.fromkeys(names or ("watch",))]
    written = systemd.install(units, Settings.load(), os.environ)
    if as_json:
        output.dump({"installed": written})
        return exits.DONE
    for path in written:
        output.say(f"{path} is installed and started.")
    output.say(f"To let it run while you are not logged in: {systemd.LINGER}")
    return exits.DONE


@service.command()
@parameters.JSON
def status(*, as_json: bool) -> int:
    """Show whether the units are installed and run."""
    as_json = parameters.json_wanted(as_json=as_json)
    return _tell(as_json=as_json)


def _tell(*, as_json: bool) -> int:
    found = systemd.states(os.environ)
    if as_json:
        output.dump({"units": found})
        return exits.DONE
    output.table([(each.unit, _words(each), str(each.path)) for each in found])
    return exits.DONE if any(each.installed for each in found) else exits.FOUND_NOTHING


def _words(state: systemd.UnitState) -> str:
    return f"{state.active}, {state.enabled or 'not enabled'}" if state.installed else "not installed"


@service.command()
@parameters.JSON
def remove(*, as_json: bool) -> int:
    """Stop the services and remove their units."""
    as_json = parameters.json_wanted(as_json=as_json)
    removed = systemd.remove(os.environ)
    if as_json:
        output.dump({"removed": removed})
    elif removed:
        for path in removed:
            output.say(f"{path} is stopped and removed.")
    else:
        output.say("No service is installed.")
    return exits.DONE
