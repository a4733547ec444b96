"""`noctuary config`, `locate`, `version` and `doctor`: this installation, and whether it is well."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.settings import Paths, Settings, example
from engine.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.doctor import Check


@click.command()
@parameters.JSON
def version(*, as_json: bool) -> int:
    """Print the version."""
    if as_json:
        output.dump({"noctuary": VERSION, "python": sys.version.split(maxsplit=1)[0]})
    else:
        output.say(f"noctuary {VERSION}")
    return exits.DONE


@click.command()
@parameters.JSON
def locate(*, as_json: bool) -> int:
    """Print the folders in which Noctuary keeps its things.

    None is made by asking.
    """
    paths = Paths.of(os.environ)
    found = {name: str(path) for name, path in paths.locations().items()}
    found["settings"] = str(paths.config_file)
    if as_json:
        output.dump(found)
    else:
        output.table(list(found.items()))
    return exits.DONE


@click.command()
@click.option(
    "--example", "as_example", is_flag=True, help="Print a config.toml that explains every setting."
)
@parameters.JSON
def config(*, as_example: bool, as_json: bool) -> int:
    """Show each setting and where its value came from.

    Secrets are masked.
    """
    if as_example:
        if as_json:
            output.dump({"example": example()})
        else:
            output.say_text(example())
        return exits.DONE
    settings = Settings.load()
    if as_json:
        rows = {row.name: row for row in settings.rows()}
        output.dump({"settings": rows, "cautions": settings.cautions, "ignored": settings.ignored})
    else:
        _print_config(settings)
    return exits.DONE


def _print_config(settings: Settings) -> None:
    rows = settings.rows()
    output.table([(row.name, row.value or "none", row.source) for row in rows])
    if settings.ignored:
        output.say()
        output.say("Ignored:")
        for sentence in settings.ignored:
            output.say(f"  {sentence}")
    for caution in settings.cautions:
        output.say()
        output.say(f"Caution: {caution}")
    output.say()
    output.say(f"Settings file: {settings.paths.config_file}")


@click.command()
@click.option("--fix", is_flag=True, help="Put right what safely can be, and say what was left and why.")
@parameters.JSON
@click.pass_context
def doctor(ctx: click.Context, *, fix: bool, as_json: bool) -> int:
    """Check this installation and say what to do.

    Settings, keys, folders, database server, database, model, watching, editor, terminal and clipboard
    are tried. Exit status 2 when a check fails, with --fix when one still does. Nothing is ever removed.
    """
    check_keys = getattr(ctx.find_root().command, "check_keys", None)
    return session.endable(lambda: _examine(check_keys, fix=fix, as_json=as_json))


async def _examine(
    check_keys: Callable[[Mapping[str, str]], object] | None, *, fix: bool, as_json: bool
) -> int:
    from engine.doctor import State, examine
    from engine.doors.terminal import terminal_checks

    waiting = session.Waiting()
    try:
        checks = await examine(check_keys, fix=fix, on_state=waiting.state)
    finally:
        waiting.over()
    checks += terminal_checks(os.environ)
    if as_json:
        output.dump({"checks": checks})
    else:
        for check in checks:
            _print_check(check)
    return exits.ERROR if any(check.state is State.FAIL for check in checks) else exits.DONE


def _print_check(check: Check) -> None:
    output.say(f"{check.state:<4}  {check.name}: {check.sentence}")
    for line in (check.remedy, check.fixed and f"Fixed: {check.fixed}", check.left and f"Left: {check.left}"):
        if line:
            output.say(f"      {line}")
