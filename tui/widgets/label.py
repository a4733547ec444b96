"""Text that is painted only when it differs from what stands there: an idle screen sends no bytes."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Label(Static):
    """A `Static` for `Content`, never for markup. `grows`: its height follows its text."""

    def __init__(self, text: Content | None = None, *, classes: str = "", grows: bool = False) -> None:
        self._shown = Content() if text is None else text
        self._grows = grows
        super().__init__(self._shown, classes=classes, markup=False)

    @property
    def shown(self) -> Content:
        """What stands there."""
        return self._shown

    def put(self, text: Content) -> None:
        """Show this, if it is not shown already."""
        if not text.is_same(self._shown):
            self._shown = text
            self.update(text, layout=self._grows)
