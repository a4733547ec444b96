"""The one choke point between text and the screen: no string reaches a widget but through here.

Textual parses a plain `str` as markup and passes control characters to the terminal. So every text is
first made visible (`engine.text.safe`) and then wrapped in a type that is never parsed: `Content` for
widgets, rich `Text` for cells of a table. Widths are cells of the terminal, never characters.
What is forgotten here, `tui.painting` still keeps from the terminal; but it knows nothing of columns.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.content import Content

from engine.text.amounts import count
from engine.text.safe import visible

TAB = 4
"""Cells between two tab stops."""


_PICTURE = "\u2190-\u2bff\U0001f000-\U0001faff"
STRAY_JOINER = re.compile(f"(?<![{_PICTURE}\ufe0f])\u200d|\u200d(?![{_PICTURE}])")
"""A joiner that makes no picture of two. Where widths are measured, what follows it has none, and on the
terminal it has."""


def legible(text: str, *, keep_newlines: bool = True) -> str:
    """The text with all that a terminal would obey shown as symbols, and as wide there as it is measured."""
    shown = visible(text, keep_newlines=keep_newlines)
    return STRAY_JOINER.sub("", shown) if "\u200d" in shown else shown


def plain(text: str) -> str:
    """The text on one line, with all that a terminal would obey shown as symbols, and tabs as spaces.

    A tab takes one cell where widths are measured, and up to eight on the terminal.
    """
    return legible(text, keep_newlines=False).expandtabs(TAB)


def content(text: str, style: str = "") -> Content:
    """The text as it may be given to any widget; newlines stay."""
    shown = legible(text)
    return Content.styled(shown, style) if style else Content(shown)


def line(text: str, style: str = "") -> Content:
    """The same on one line."""
    shown = plain(text)
    return Content.styled(shown, style) if style else Content(shown)


def all_of(number: int, noun: str) -> str:
    """`the row`, `all 3 rows`: what a question is about when it is about everything."""
    return f"the {noun}" if number == 1 else f"all {count(number, noun)}"


def cell(text: str, style: str = "", *, width: int = 0, right: bool = False) -> Text:
    """A cell of a table: one line, cut to `width` cells (0: as long as it is)."""
    shown = plain(text)
    if width:
        shown = cut(shown, width)
    return Text(shown, style=style, no_wrap=True, end="", justify="right" if right else None)


def cut(text: str, width: int) -> str:
    """At most `width` cells of the text, with `…` where its end was cut off."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""


def cut_path(path: str, width: int) -> str:
    """At most `width` cells of a path, with `…` where its beginning was cut off: the name matters most."""
    if cell_len(path) <= width:
        return path
    # Beyond so many characters a path is too wide, or full of what has no width: each is measured anew.
    path = path[-4 * max(width, 1) :]
    while path and cell_len(path) > width - 1:
        path = path[1:]
    return "…" + path if width > 0 else ""
