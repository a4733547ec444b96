"""The `noctuary` command: the console on a folder, and every other command from the engine's door.

Textual is imported only when the console is opened, so that the commands stay quick.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine import packages
from engine.doors import cli
from engine.errors import FolderError
from engine.settings import Settings
from engine.settings.paths import expanded

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("open")
@click.argument("folder", required=False, type=click.Path())
def console(folder: str | None) -> int:
    """Open the console. `noctuary FOLDER` does the same.

    FOLDER is added to the folders of notes if it is new.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "The console needs a terminal. In a script, use the commands: `noctuary search --json`, for one."
        )
    packages.check()
    settings = Settings.load()
    chosen = None if folder is None else _checked(folder)
    from tui.running import run

    return asyncio.run(run(settings, chosen))


def _checked(folder: str) -> Path:
    """The folder, absolute, before the screen is taken over for one that is not there."""
    if not folder:
        raise FolderError("The name of the folder is empty.", remedy="Name a folder of Markdown files.")
    path = expanded(Path(folder)).absolute()
    try:
        state = "" if path.is_dir() else "is not a folder" if path.exists() else "does not exist"
    except OSError as error:  # no right to look, or a name that is too long for the disk
        state = f"cannot be read: {error.strerror}"
    if state:
        raise FolderError(f"{path} {state}.", remedy="Name a folder of Markdown files.")
    return path


def check_keys(overrides: Mapping[str, str]) -> None:
    """Whether the console could open with these keys; else it raises SettingsError."""
    from tui.keymap import Keymap

    Keymap(overrides)


def main() -> None:
    """Run the command line with the console among its commands."""
    cli.main(console, check_keys)
