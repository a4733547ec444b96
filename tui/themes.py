"""Themes, and a screen without any colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from textual.filter import LineFilter

if TYPE_CHECKING:
    from textual.app import App
    from textual.color import Color

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
