"""The bars around a pane: tabs above, hints below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.content import Content

from tui.text import line, plain
from tui.widgets.label import Label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tui.panes.base import Pane


class TabBar(Label):
    """The panes by number, the one that is up in brackets, so that no colour is needed."""

    def show(self, panes: Sequence[Pane[Any]], active: Pane[Any]) -> None:
        """Draw the tabs."""
        parts: list[Content | tuple[str, str]] = []
        for pane in panes:
            name = f"{pane.number} {pane.title}"
            parts.append((f"[{name}]", "bold reverse") if pane is active else (f" {name} ", ""))
            parts.append((" ", ""))
        self.put(Content.assemble(*parts))


class HintBar(Label):
    """The keys of the pane, or for one key's time a flash."""

    def __init__(self) -> None:
        super().__init__()
        self._hints = Content()
        self._flashing = False

    def show(self, hints: Sequence[tuple[str, str]]) -> None:
        """Hints as pairs of a key and what it does."""
        parts: list[tuple[str, str]] = []
        for key, label in hints:
            parts += [(plain(key), "bold"), (f" {plain(label)}   ", "")]
        self._hints = Content.assemble(*parts)
        if not self._flashing:
            self.put(self._hints)

    def flash(self, text: str, *, error: bool = False) -> None:
        """Show a sentence until `calm`."""
        self._flashing = True
        self.put(line(("✗ " if error else "» ") + text, "$text-error" if error else "$text-accent"))

    def calm(self) -> None:
        """Bring the hints back."""
        self._flashing = False
        self.put(self._hints)
