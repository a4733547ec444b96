"""The command line: `noctuary COMMAND`, its exit statuses and its errors.

Exit statuses: 0 done, 1 nothing found, 2 an error (one sentence on standard error) or work of which
something failed, 130 interrupted, 141 the reader of the output went away. Commands are found by name
and imported when called, so that `noctuary version` costs nothing.
"""

from __future__ import annotations

import difflib
import importlib
import keyword
import os
import sys
from typing import TYPE_CHECKING

import click

from engine.doors import crash, exits, output, streams
from engine.errors import NoctuaryError
from engine.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Command name to the module that holds it, in the order of the help.
COMMANDS = {
    "search": "search",
    "ask": "ask",
    "write": "write",
    "index": "indexing",
    "ingest": "indexing",
    "folders": "folders",
    "jobs": "queue",
    "retry": "queue",
    "drift": "drift",
    "eval": "eval",
    "models": "models",
    "recall": "turns",
    "remember": "turns",
    "prepare": "turns",
    "verify": "turns",
    "record": "turns",
    "memory": "memory",
    "lessons": "lessons",
    "synthesize": "synthesize",
    "import": "importing",
    "cores": "cores",
    "status": "status",
    "inbox": "status",
    "log": "log",
    "traces": "traces",
    "tokens": "tokens",
    "mcp": "mcp",
    "hook": "hook",
    "watch": "services",
    "worker": "services",
    "serve": "serve",
    "service": "service",
    "doctor": "about",
    "config": "about",
    "locate": "about",
    "version": "about",
    "db-init": "indexing",
}


class PipeClosed(click.ClickException):
    """The reader of our output went away: nothing to say, and nobody to say it to."""

    exit_code = exits.BROKEN_PIPE


class Doors(click.Group):
    """A group that imports a command when it is called, and opens the console on a bare folder."""

    console: click.Command | None = None
    check_keys: Callable[[Mapping[str, str]], object] | None = None
    """The console's look at the keys of the settings, which `doctor` borrows; it raises SettingsError."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The console first, then the commands in their order."""
        del ctx
        return ([self.console.name or ""] if self.console else []) + list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; imports its module."""
        del ctx
        if self.console and cmd_name == self.console.name:
            return self.console
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"engine.doors.commands.{COMMANDS[cmd_name]}")
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_" if keyword.iskeyword(name) else name)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """No words at all open the console."""
        if not args:
            args = [self.console.name or ""] if self.console else ["--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A first word that is no command is the folder to open the console on."""
        word = args[0]
        if self.get_command(ctx, word) is None:
            if self.console is None or not _names_a_folder(word):
                raise click.UsageError(f"'{word}' is neither a command nor a folder.{_meant(word)}", ctx)
            return self.console.name, self.console, args
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command and hand out its output while a closed pipe can still be told apart."""
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise PipeClosed("") from error
        return result


def _names_a_folder(word: str) -> bool:
    # pathlib takes "" for the working folder, and falls over a name that is too long for the disk.
    return os.sep in word or word.startswith((".", "~")) or os.path.exists(word)  # noqa: PTH110


def _meant(word: str) -> str:
    near = difflib.get_close_matches(word, list(COMMANDS), n=1)
    return f" Did you mean `noctuary {near[0]}`?" if near else ""


@click.version_option(VERSION, "-V", "--version", message="noctuary %(version)s")
@click.group(
    cls=Doors,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`noctuary FOLDER` opens the console on a folder. Every command explains itself with --help. "
    "With --json, standard output holds JSON and nothing else; errors and remarks go to standard error.",
)
def group() -> None:
    """Notes you can cite and memory you can audit, in the terminal."""


def run(arguments: Sequence[str] | None = None, *, console: click.Command | None = None) -> int:
    """Run a command line and give its exit status; every foreseen error becomes a sentence."""
    group.console = console
    streams.guard()
    try:
        result = group.main(
            args=None if arguments is None else list(arguments), prog_name="noctuary", standalone_mode=False
        )
    except PipeClosed as error:
        # What is still buffered has nowhere to go; the interpreter would complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return error.exit_code
    except click.Abort:
        return exits.INTERRUPTED
    except click.ClickException as error:
        output.complain("Usage", error.format_message(), _help_hint(error))
        return exits.ERROR
    except NoctuaryError as error:
        output.complain(error.title, error.message, error.remedy)
        return exits.ERROR
    return result if isinstance(result, int) else 0


def _help_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if isinstance(context, click.Context) else "noctuary"
    return f"`{path} --help` explains."


def main(
    console: click.Command | None = None, check_keys: Callable[[Mapping[str, str]], object] | None = None
) -> None:
    """The process: run the command line and exit with its status."""
    crash.install()
    group.check_keys = check_keys
    sys.exit(run(console=console))
