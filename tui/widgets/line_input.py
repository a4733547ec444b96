"""The input of every pane and screen: its cursor does not blink, so an idle screen sends no bytes."""

from __future__ import annotations

from textual.widgets import Input


class LineInput(Input):
    """One line of text. Backspace on an empty line does nothing, Esc is left to the owner."""

    def __init__(self, placeholder: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(placeholder=placeholder, id=id, compact=True, select_on_focus=False)
        self.cursor_blink = False
