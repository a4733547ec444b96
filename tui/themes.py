"""Themes, the one that was chosen last, and a screen without any colour."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from textual.filter import LineFilter

from engine.errors import SettingsError

if TYPE_CHECKING:
    from textual.app import App
    from textual.color import Color

    from engine.settings import Paths

FILE = "theme"
"""In the state folder: the name of the theme, and nothing else."""

LONGEST = 100
"""Characters read of it: no theme has a longer name."""

NEXT = {
    "textual-dark": "textual-light",
    "textual-light": "ansi-dark",
    "ansi-dark": "ansi-light",
    "ansi-light": "textual-dark",
}
"""Which theme follows which: dark, light, and the terminal's own colours on a dark or light ground."""


class NoColour(LineFilter):
    """Takes every colour out and leaves bold, underline and reverse.

    Textual's own filter for NO_COLOR turns colours into greys, or sets the default colour: both are colour
    codes all the same.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002
        """The segments without colour."""
        return [
            Segment(text, None if style is None else style.without_color, control)
            for text, style, control in segments
        ]


def without_colour(app: App[Any]) -> None:
    """Let no colour code reach the terminal. Filters run in order, so ours has the last word."""
    app._filters.append(NoColour())  # noqa: SLF001  (Textual has no public way to add a filter)


def next_theme(app: App[Any]) -> str:
    """Change to the next theme; its name."""
    app.theme = NEXT.get(app.theme, next(iter(NEXT)))
    return app.theme


def restore(app: App[Any], paths: Paths) -> None:
    """Take the theme of the last session. One that is not there any more, or cannot be read, is none."""
    try:
        with (paths.state_at / FILE).open(encoding="utf-8", errors="replace") as file:
            name = file.read(LONGEST).strip()
    except OSError:
        return
    if name in NEXT and name in app.available_themes:
        app.theme = name


async def keep(paths: Paths, name: str) -> str:
    """Write the name of the theme down; why not, when it cannot be."""
    try:
        await asyncio.to_thread(lambda: (paths.state / FILE).write_text(f"{name}\n", encoding="utf-8"))
    except (OSError, SettingsError) as error:
        return f"it cannot be kept: {error}"
    return ""
