"""The last line of defence of the screen: where the rows of all widgets become bytes, text is only text.

Texts are made visible before they are laid out (`tui.text`). This stands under every widget, ours and
Textual's: a row that holds a character a terminal would obey is painted with a symbol in its place, and no
row carries a link. Each part of the row keeps its width, so that no column moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.strip import Strip

from engine.text.safe import blunted, steers

if TYPE_CHECKING:
    from rich.console import Console

_render = Strip.render


def _guarded(strip: Strip, console: Console) -> str:
    """See `Strip.render`. What was rendered before is kept by the strip, so a row is looked at once."""
    if strip._render_cache is None and _is_unsafe(strip):  # noqa: SLF001
        strip._render_cache = _render(_harmless(strip), console)  # noqa: SLF001
    return _render(strip, console)


def _is_unsafe(strip: Strip) -> bool:
    return steers(strip.text) or any(style is not None and style.link for _, style, _ in strip)


def _harmless(strip: Strip) -> Strip:
    return Strip([_blunt(segment) for segment in strip], strip.cell_length)


def _blunt(segment: Segment) -> Segment:
    text, style, _ = segment
    shown = set_cell_size(blunted(text), cell_len(text)) if steers(text) else text
    return Segment(shown, None if style is None else style.update_link(None))


# There is no other place where all rows pass and text can still be told from the terminal's own codes.
# Textual is pinned, and a test on a real terminal holds it.
setattr(Strip, "render", _guarded)  # noqa: B010  a type checker need not believe it
