"""The input of every pane and screen: its cursor does not blink, so an idle screen sends no bytes.

What is pasted may hold control characters, and an input draws its text as it is: each becomes a space.
"""

from __future__ import annotations

import re

from textual.widgets import Input

from tui.text import STRAY_JOINER

_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys, that turn the direction of text, or that no terminal can take."""

_STRAY = re.compile(f"(?:{STRAY_JOINER.pattern})(?!$)")
"""A joiner of nothing; but what one at the end joins may not be typed yet."""

NON_JOINER = "\u200c"


class LineInput(Input):
    """One line of text. Backspace on an empty line does nothing, Esc is left to the owner."""

    def __init__(self, placeholder: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def validate_value(self, value: str) -> str:
        """Every character that would not be text, as a space, and a joiner of nothing as one that joins
        nothing; so the cursor keeps its place.
        """
        return _STRAY.sub(NON_JOINER, _OBEYED.sub(" ", value))
