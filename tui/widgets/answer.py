"""An answer as it is written: a line on how far it is, and its text, scrollable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Vertical

from tui.widgets import answer_text
from tui.widgets.answer_text import Shown, Stage
from tui.widgets.label import Label
from tui.widgets.text_rows import TextRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.content import Content


class AnswerLines(TextRows):
    """The rows of an answer. While it grows its end is shown, unless the user has scrolled up."""

    DEFAULT_CSS = "AnswerLines { height: auto; }"

    def __init__(self) -> None:
        super().__init__()
        self._shown = Shown(Stage.DONE)

    def put(self, shown: Shown) -> None:
        """Show an answer as far as it is."""
        follows = self.scroll_offset.y >= self.max_scroll_y
        self._shown = shown
        self.lay_out()
        if shown.running and follows:
            self.call_after_refresh(self.scroll_by, len(self._laid))

    def laid_out(self, width: int) -> Sequence[Content]:
        """See `TextRows`."""
        return answer_text.rows(self._shown, width)


class AnswerView(Vertical):
    """A heading with how far it is, and the text under it. Hidden until something was asked."""

    DEFAULT_CSS = """
    AnswerView { display: none; height: auto; }
    AnswerView.-open { display: block; }
    AnswerView > .answer-title { height: 1; background: $panel; padding: 0 1; }
    AnswerView:focus-within > .answer-title { text-style: bold reverse; }
    AnswerView > AnswerLines { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.lines = AnswerLines()
        self._title = Label(classes="answer-title")
        self._shown = Shown(Stage.DONE)
        self._cancel = ""

    def compose(self) -> ComposeResult:
        """Title and lines."""
        yield self._title
        yield self.lines

    @property
    def open(self) -> bool:
        """Whether there is an answer here."""
        return self.has_class("-open")

    @property
    def shown(self) -> Shown:
        """The answer as far as it is shown."""
        return self._shown

    def put(self, shown: Shown, cancel: str) -> None:
        """Show an answer as far as it is; `cancel` is the key that cancels it."""
        same = (shown.text, shown.marks, shown.answer, shown.stage) == (
            self._shown.text,
            self._shown.marks,
            self._shown.answer,
            self._shown.stage,
        )
        self._shown, self._cancel = shown, cancel
        self.add_class("-open")
        if not same:
            self.lines.put(shown)
        self._draw_title()

    def fit(self, height: int) -> None:
        """Take at most so many lines."""
        self.lines.styles.max_height = max(height - 1, 1)

    def close(self) -> None:
        """Take it away."""
        self.remove_class("-open")

    def on_resize(self) -> None:
        """The title is cut to the width."""
        self._draw_title()

    def _draw_title(self) -> None:
        self._title.put(answer_text.title(self._shown, self._cancel, max(self.size.width - 2, 1)))
