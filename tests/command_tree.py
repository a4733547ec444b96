"""Every command of the command line, for tests that hold something of all of them."""

from __future__ import annotations

import click

from engine.doors.cli import group

CONTEXT = click.Context(group)


def commands(parent: click.Group = group, path: str = "") -> list[tuple[str, click.Command]]:
    """Every command with its name as typed, those of groups included."""
    found = []
    for name in parent.list_commands(CONTEXT):
        command = parent.get_command(CONTEXT, name)
        assert command is not None, name
        found.append((f"{path}{name}", command))
        if isinstance(command, click.Group):
            found += commands(command, f"{name} ")
    return found
