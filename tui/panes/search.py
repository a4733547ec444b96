"""Search: citations as you type, each checked against the disk. Here is what the keys do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.widgets import Input

from engine.notes.model import Mode
from tui.keymap import bindings
from tui.panes import search_work as work
from tui.panes.search_answer import SearchAnswer
from tui.text import plain
from tui.widgets.citation_list import CitationList

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from textual.binding import BindingType

    from engine.notes.evaluated import Question
    from engine.notes.model import Citation
    from tui.widgets.text_rows import TextRows

MANY = 1_000_000
"""More rows than there are: to the top, to the bottom."""

ROW_ACTIONS = frozenset(
    {"list.mark", "list.mark-all", "list.copy", "list.open", "search.preview", "search.label"}
)


class SearchPane(SearchAnswer):
    """Pane 2. Without citations the pane itself has the focus, so that no key is typed by mistake."""

    number = 2
    title = "Search"
    hints = ("list.filter", "list.open", "search.ask", "list.copy", "search.preview")
    labels: ClassVar[Mapping[str, str]] = {"list.filter": "search line"}
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("list", "search")]

    def __init__(self) -> None:
        super().__init__()
        self._marked: dict[str, Citation] = {}

    # Moving between input, list and preview --------------------------------------------------

    def _leave_input(self) -> None:
        """To the citations, or to the pane where there are none: then its keys work."""
        query = self.input.value
        if self.input.remember():
            self.host.spawn(self.input.save(query), "search.history", "keep the search history")
        self._focus_list()

    def _focus_list(self) -> None:
        (self.list if self.list.citations else self).focus()

    def _close_glob(self) -> None:
        self._focus_list()
        self.glob.remove_class("-open")

    def _set_zoom(self, *, on: bool) -> None:
        self.set_class(on, "-zoom")
        (self.preview.lines if on else self.list).focus()
        self._read_preview()

    def _move(self, by: int) -> None:
        if self._scrolled is not None:
            self._scrolled.scroll_by(by)
        else:
            self.list.move_to(self.list.cursor + by)

    @property
    def _scrolled(self) -> TextRows | None:
        """What the keys of the list scroll instead: the preview alone, or an answer that has the focus."""
        if self.zoomed:
            return self.preview.lines
        return self.answer.lines if self.answer.lines.has_focus else None

    @property
    def _half(self) -> int:
        """Half a page, in citations or lines."""
        page = self.list.page if self._scrolled is None else self._scrolled.size.height
        return max(page // 2, 1)

    def do_down(self) -> None:
        """In the input: newer queries, then the citations. Else one down."""
        if self.input.has_focus:
            if not self.input.newer():
                self._leave_input()
        else:
            self._move(1)

    def do_up(self) -> None:
        """In the input: older queries. On the first citation: the input. Else one up."""
        if self.input.has_focus:
            if not self.input.older():
                self.flash("No older query")
        elif self._scrolled is None and self.list.cursor == 0:
            self.input.focus()
        else:
            self._move(-1)

    def do_half_down(self) -> None:
        """Down half a page, also while typing."""
        self._move(self._half)

    def do_half_up(self) -> None:
        """Up half a page, also while typing."""
        self._move(-self._half)

    def do_top(self) -> None:
        """To the first citation or line."""
        self._move(-MANY)

    def do_bottom(self) -> None:
        """To the last citation or line."""
        self._move(MANY)

    def do_next_match(self) -> None:
        """The next citation."""
        self._move(1)

    def do_previous_match(self) -> None:
        """The citation before."""
        self._move(-1)

    def do_filter(self) -> None:
        """Back to the query: here that is the filter."""
        self._set_zoom_off()
        self.input.focus()

    def _set_zoom_off(self) -> None:
        if self.zoomed:
            self._set_zoom(on=False)

    def do_clear(self) -> None:
        """Out of what is open, innermost first; it never leaves the pane."""
        if self.glob.has_focus:
            self.glob.value = ""
            self._close_glob()
            self.ask(replace(self.question, glob=""), after=0)
        elif self.answer.shown.running and self.answer.open:
            self.cancel_answer()
        elif self.zoomed:
            self._set_zoom(on=False)
        elif self.input.has_focus:
            self._leave_input()
        elif self.answer.open:
            self.close_answer()
        elif len(self.marks):
            self.marks.clear()
        elif self.question.glob or self.question.folder is not None:
            self.glob.value = ""
            self.ask(replace(self.question, glob="", folder=None), after=0)
        else:
            key = self.host.keys.shown("list.filter")
            self.flash(f"Nothing to drop; {key} goes to the search line")

    @on(Input.Submitted, "#search-input")
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._finish_typing()

    def _finish_typing(self) -> None:
        """Search for what is typed without waiting for a pause, and leave the input."""
        if self._typing is not None:
            self._ask_now()
        self._leave_input()

    @on(Input.Submitted, "#search-glob")
    def _glob_kept(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_glob()
        self.ask(replace(self.question, glob=event.value.strip()), after=0)

    # Actions ---------------------------------------------------------------------------------

    def unavailable(self, action: str) -> str:
        """What acts on a citation needs one, what is asked or kept needs a question."""
        if action == "search.ask":
            return self.why_not_ask()
        if action.startswith("search.label") and self.question.empty:
            return "There is no query to label"
        if action == "list.copy" and self.answer.lines.has_focus:
            return ""
        return "There is no citation here" if action in ROW_ACTIONS and self.list.current is None else ""

    def do_mark(self) -> None:
        """Mark or unmark the citation and go on to the next."""
        self._remember_citations()
        self.marks.toggle(self.list.keys[self.list.cursor])
        self._move(1)

    def do_mark_all(self) -> None:
        """Mark all citations, or none."""
        self._remember_citations()
        self.marks.toggle_all(self.list.keys)

    def _remember_citations(self) -> None:
        """Marks outlive the query, so what they stand for has to."""
        kept = {key: citation for key, citation in self._marked.items() if key in self.marks}
        self._marked = kept | dict(zip(self.list.keys, self.list.citations, strict=True))

    def do_unmark(self) -> None:
        """Take the last change of the marks back."""
        if not self.marks.undo():
            self.flash("Nothing to undo: no marks were changed")

    def do_ask(self) -> None:
        """Have the question answered; where it is, go between the answer and the citations."""
        self._set_zoom_off()
        if self.input.has_focus:
            self._finish_typing()
        if not self.answered_already:
            self.ask_model()
        elif self.answer.lines.has_focus:
            self._focus_list()
        else:
            self.answer.lines.focus()

    def do_copy(self) -> None:
        """Copy the references of the marks, else of the citation under the cursor, one on a line; where an
        answer has the focus, the answer with its sources.
        """
        if self.answer.lines.has_focus:
            self.copy_answer()
            return
        chosen = [self._marked[key] for key in self.marks if key in self._marked]
        if not chosen and self.list.current is not None:
            chosen = [self.list.current]
        text = "\n".join(plain(self.told(citation)) for citation in chosen)
        self.host.spawn(work.copy_lines(self, text), "search.copy", "copy")

    def do_open(self) -> None:
        """Open the citation in the editor."""
        if self.list.current is not None:
            self.host.spawn(work.open_editor(self, self.host, self.list.current), "editor", "open the editor")

    @on(CitationList.Chosen)
    def _chosen(self) -> None:
        self.do_open()

    def on_returned(self, message: work.Returned) -> None:
        """Back from the editor: check, preview and search again."""
        message.stop()
        self.do_refresh()

    def do_label(self) -> None:
        """Make the query a labelled question that the citation under the cursor answers."""
        self._label(self.list.current.reference if self.list.current is not None else None)

    def do_label_nothing(self) -> None:
        """Make the query a labelled question that nothing answers."""
        self._label(None)

    def _label(self, answer: str | None) -> None:
        query = self.question.text.strip()

        def said(added: tuple[Question, Path]) -> str:
            eval_key = self.host.keys.shown("app.eval")
            return f"{added[0].id} is answered by {answer or 'nothing'}, in {added[1]}; {eval_key} opens Eval"

        self.command(lambda engine: engine.evaluation.add(query, answer), "label", said)

    def do_refresh(self) -> None:
        """Search and check again; where an answer has the focus, have it written anew."""
        self._checked.clear()
        self._ask_now()
        if self.answer.lines.has_focus:
            self.ask_model()

    def do_preview(self) -> None:
        """The preview alone on the screen, or back."""
        self._set_zoom(on=not self.zoomed)

    def do_preview_down(self) -> None:
        """Scroll the preview down."""
        self.preview.lines.scroll_by(1)

    def do_preview_up(self) -> None:
        """Scroll the preview up."""
        self.preview.lines.scroll_by(-1)

    def do_mode(self) -> None:
        """The next mode: hybrid, keyword, vector."""
        modes = list(Mode)
        mode = modes[(modes.index(self.question.mode) + 1) % len(modes)]
        self.ask(replace(self.question, mode=mode), after=0)

    def do_explain(self) -> None:
        """Show or hide rank and score in each list."""
        self.list.explain(on=not self.list.explaining)

    def do_path(self) -> None:
        """Narrow the search to paths."""
        self._set_zoom_off()
        self.glob.add_class("-open")
        self.glob.focus()

    def do_folder(self) -> None:
        """Narrow the search to the next folder."""
        if self.host.engine is None:
            self.flash("The database is not open yet")
            return
        self.host.spawn(work.read_folders(self, self.host.engine), "search.folders", "read the folders")

    def on_folders_read(self, message: work.FoldersRead) -> None:
        """All folders, then each."""
        message.stop()
        if len(message.folders) < 2:
            self.flash("There is only one folder" if message.folders else "There is no folder yet")
            return
        choices = [None, *message.folders]
        here = self.question.folder
        at = choices.index(here) if here in choices else 0
        self.ask(replace(self.question, folder=choices[(at + 1) % len(choices)]), after=0)
