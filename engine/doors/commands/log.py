"""`noctuary log`: what the engine did, from the file that every process of this installation writes."""

from __future__ import annotations

import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, output, parameters
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
    file = Paths.of(os.environ).state_at / "noctuary.log"
    wanted = LEVELS[LEVELS.index(level) :]
    lines = [line for line in _read(file) if line["level"] in wanted or line["level"] == "critical"][-limit:]
    if as_json:
        output.dump({"log": lines})
        return exits.DONE
    for line in lines:
        at = datetime.fromisoformat(line["at"]).astimezone()
        output.say(f"{at:%Y-%m-%d %H:%M:%S} {line['level']:<7} {line['source']}: {line['text']}")
    return exits.DONE


def _read(file: Path) -> list[dict[str, Any]]:
    """The lines of the log. One that was torn by a crash or a full disk is left out."""
    if not file.exists():
        return []
    found = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found
