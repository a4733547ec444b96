"""`noctuary log`: what the engine did, from the file that every process of this installation writes."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from engine.activity import LOG_FILE
from engine.doors import exits, output, parameters
from engine.errors import LogError
from engine.settings import Paths

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many lines at most."
)
@click.option(
    "--level", type=click.Choice(LEVELS), default="info", show_default=True, help="The least grave to show."
)
@parameters.JSON
def log(limit: int, level: str, *, as_json: bool) -> int:
    """Show the last lines of the log, newest last."""
    file = Paths.of(os.environ).state_at / LOG_FILE
    wanted = {*LEVELS[LEVELS.index(level) :], "critical"}
    lines = [line for line in _read(file) if line["level"] in wanted][-limit:]
    if as_json:
        output.dump({"log": lines})
        return exits.DONE
    for line in lines:
        at = datetime.fromisoformat(line["at"]).astimezone()
        output.say(f"{at:%Y-%m-%d %H:%M:%S} {line['level']:<7} {line['source']}: {line['text']}")
    if not lines:
        output.note(f"No lines of this level in {file}." if file.exists() else f"No log yet: {file}.")
    return exits.DONE


def _read(file: Path) -> list[dict[str, Any]]:
    """The lines of the log. One that was torn by a crash or a full disk is left out.

    Raises:
        LogError: it is there, and cannot be read.
    """
    try:
        _refuse_other_kinds(file)
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LogError(
            f"{file} cannot be read: {error.strerror}.",
            remedy="Give yourself the right to, or free its folder; `noctuary doctor` looks at it.",
        ) from error
    return [line for line in map(_line, text.splitlines()) if line is not None]


def _refuse_other_kinds(file: Path) -> None:
    if file.exists() and not file.is_file():  # a pipe of that name would never end
        raise LogError(f"{file} is not a file.", remedy="Remove it; it is made anew.")


def _line(text: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(text)
        datetime.fromisoformat(found["at"])
        whole = all(isinstance(found[name], str) for name in ("level", "source", "text"))
    except (ValueError, KeyError, TypeError):
        return None
    return found if whole else None
