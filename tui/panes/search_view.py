"""What the search pane asks and shows: the question, its citations, their freshness, the preview.

The question is a value. Whatever changes it cancels the search under way, in the server too, and asks
anew after a moment without keys. Workers answer with messages; all state is kept and changed here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from engine.errors import QueryError
from tui.panes import search_work as work
from tui.panes.base import Fetched, Pane, Shown
from tui.panes.search_text import Found, Question, nothing, summary
from tui.text import content
from tui.widgets.answer import AnswerView
from tui.widgets.citation_list import CitationList, key_of
from tui.widgets.label import Label
from tui.widgets.line_input import LineInput
from tui.widgets.marks import Marks
from tui.widgets.preview import CitationPreview
from tui.widgets.query_input import QueryInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.widget import Widget

    from engine import Engine
    from engine.notes.model import Citation

RESULTS = 30
"""Citations asked for: some screens to look through; who needs more asks better."""

TYPING_SECONDS = 0.12
"""Without a key for this long, the question is asked: shorter than a pause, longer than a keystroke."""

RESTING_SECONDS = 0.05
"""The cursor rests this long before the preview is read, so that holding a key down reads nothing."""

LIVE_SECONDS = 1.0
"""Between two searches for changes of the index while the question stays the same."""

WIDE = 100
"""Columns from which list and preview stand side by side."""


class SearchView(Pane[Found], can_focus=True):
    """An input, the citations it finds, and a preview, all drawn from one `Question`."""

    scope = "search"
    topics = frozenset({"folder", "file", "embedding"})
    DEFAULT_CSS = """
    SearchView > #search-glob { display: none; }
    SearchView > #search-glob.-open { display: block; }
    SearchView > .search-summary { height: auto; max-height: 2; color: $text-muted; padding: 0 1; }
    SearchView > Horizontal { height: 1fr; }
    SearchView CitationList { width: 1fr; }
    SearchView .beside { width: 1fr; height: 100%; border-left: vkey $panel; }
    SearchView CitationPreview { height: 1fr; }
    SearchView.-narrow > Horizontal { layout: vertical; }
    SearchView.-narrow CitationList { width: 100%; height: 1fr; }
    SearchView.-narrow .beside { width: 100%; height: auto; border-left: none; }
    SearchView.-narrow CitationPreview { display: none; }
    SearchView.-zoom .beside { width: 100%; height: 100%; border-left: none; }
    SearchView.-zoom CitationPreview { display: block; }
    SearchView.-zoom CitationList, SearchView.-zoom AnswerView { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.question = Question()
        self.marks = Marks()
        self.input = QueryInput("Search your notes", id="search-input")
        self.glob = LineInput("Only paths like work/**/*.md: Enter keeps it, Esc drops it", id="search-glob")
        self.list = CitationList(self.marks)
        self.preview = CitationPreview()
        self.answer = AnswerView()
        self._summary = Label(classes="search-summary", grows=True)
        self._answered = self._traced = Question()
        self._checked: set[str] = set()
        self._typing: Timer | None = None
        self._resting: Timer | None = None
        self._live: Timer | None = None

    def compose(self) -> ComposeResult:
        """The input stands above everything, also while there is nothing else."""
        yield self.input
        yield self.glob
        yield self._summary
        yield from super().compose()

    def body(self) -> ComposeResult:
        """List and preview, side by side where there is room; an answer above the preview, or below all."""
        beside = Vertical(self.answer, self.preview, classes="beside")
        yield Horizontal(self.list, beside, classes="body")

    def on_mount(self) -> None:
        """Remember what was asked in earlier sessions."""
        self.marks.listener = self._marks_changed
        self.host.spawn(
            self.input.load(self.host.settings.paths), "search.history", "read the search history"
        )

    def on_resize(self) -> None:
        """Fold the preview away where there is no room for both."""
        self.set_class(self.size.width < WIDE, "-narrow")
        self._look()

    def focus_target(self) -> Widget:
        """The search line, whatever stands below it: a key must not depend on what was done here before."""
        return self.input

    def arrive(self, kind: str) -> None:
        """Search what another pane or view has in hand."""
        if kind:
            self.input.value = kind

    def activate(self) -> None:
        """Whoever comes here types: with the preview alone on the screen the answers would not be seen."""
        self.remove_class("-zoom")
        super().activate()

    @property
    def zoomed(self) -> bool:
        """Whether the preview stands alone."""
        return self.has_class("-zoom")

    # Asking ----------------------------------------------------------------------------------

    async def fetch(self, engine: Engine) -> Found:
        """Answer the question as it stands now."""
        asked = self.question
        if asked.empty:
            return Found(asked)
        try:
            result = await engine.notes.search(
                asked.text,
                k=RESULTS,
                path_glob=asked.glob or None,
                folder=asked.folder,
                mode=asked.mode,
                prefix=asked.prefix,
                trace=asked != self._traced,  # not when the index changed, and it is asked once more
            )
            self._traced = asked
        except QueryError as error:
            return Found(asked, problem=str(error))
        return Found(asked, result)

    def ask(self, question: Question, *, after: float = TYPING_SECONDS) -> None:
        """Change the question: what is under way is void, the new one is asked when keys rest."""
        if question == self.question:
            return
        self.question = question
        self.host.workers.cancel_group(self.host, f"{self.scope}.fetch")
        self.fetching = False
        self._draw_summary()
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.set_timer(after, self._ask_now) if after else None
        if not after:
            self._ask_now()

    def _ask_now(self) -> None:
        if self._typing is not None:
            self._typing.stop()
            self._typing = None
        self.dirty = True
        self.request(restart=True)

    def changed(self) -> None:
        """The index changed: look again soon, but never more often than the eye wants."""
        self.dirty = True
        if self._live is None and self.active:
            self._live = self.set_timer(LIVE_SECONDS, self._look_again)

    def _look_again(self) -> None:
        self._live = None
        if self.active and self._typing is None:
            self._checked.clear()
            self.request()

    @on(Input.Changed, "#search-input")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.ask(replace(self.question, text=event.value))

    # Showing ---------------------------------------------------------------------------------

    def on_fetched(self, message: Fetched) -> None:
        """An answer to a question that is not asked any more is dropped."""
        if isinstance(message.snapshot, Found) and message.snapshot.question != self.question:
            message.stop()
            message.prevent_default()

    def show(self, snapshot: Found) -> None:
        """Draw an answer."""
        citations = snapshot.result.citations if snapshot.result is not None else ()
        if not citations:
            self._show_nothing(snapshot)
        if snapshot.question != self._answered:
            self._checked.clear()
        self.list.put(self.arranged(citations), stay=snapshot.question == self._answered)
        self._answered = snapshot.question
        if citations and self.has_focus:
            self.list.focus()
        self._draw_summary()

    def arranged(self, citations: Sequence[Citation]) -> Sequence[Citation]:
        """The citations in the order in which they are listed."""
        return citations

    def _show_nothing(self, found: Found) -> None:
        if self.zoomed:
            self.remove_class("-zoom")
        if not self.input.has_focus and not self.glob.has_focus and self.active:
            self.focus()  # before the list goes: the focus must not fall into the input
        keys = self.host.keys
        self.shown(Shown.EMPTY, nothing(found, self.host.status, self.input.history.entries, keys.shown))

    def status_read(self) -> None:
        """The status of the notes is new: how much of them is indexed stands in the summary."""
        if self.snapshot is not None and not self.list.citations and self.has_class(Shown.EMPTY):
            self._show_nothing(self.snapshot)
        self._draw_summary()

    def _draw_summary(self) -> None:
        result = self.snapshot.result if self.snapshot is not None else None
        text = summary(self.question, result, self.host.status, len(self.marks))
        self._summary.put(content(text))

    def _marks_changed(self) -> None:
        self.list.redraw()
        self._draw_summary()

    # Freshness and preview -------------------------------------------------------------------

    @on(CitationList.Moved)
    def _look(self) -> None:
        """Check what is on the screen, and read the preview once the cursor rests."""
        engine = self.host.engine
        if engine is None:
            return
        unchecked = [c for c in self.list.on_screen if key_of(c) not in self._checked]
        if unchecked:
            self._checked.update(key_of(citation) for citation in unchecked)
            self.run_worker(
                work.check(self, engine, unchecked),
                group="search.check",
                description="check citations",
                exit_on_error=False,
            )
        if self._resting is not None:
            self._resting.stop()
        self._resting = self.set_timer(RESTING_SECONDS, self._read_preview)

    def _read_preview(self) -> None:
        self._resting = None
        citation, engine = self.list.current, self.host.engine
        if citation is None or engine is None:
            self.preview.clear()
        elif self.preview.display:
            self.host.spawn(work.read_preview(self, engine, citation), "search.preview", "read the preview")

    def on_checked(self, message: work.Checked) -> None:
        """Show what the disk says."""
        message.stop()
        self.list.set_freshness(key_of(message.citation), message.freshness)

    def on_previewed(self, message: work.Previewed) -> None:
        """Show the lines, if the cursor is still there."""
        message.stop()
        current, key = self.list.current, key_of(message.citation)
        if current is None or key_of(current) != key:
            return
        if message.preview is None:
            self.preview.clear(message.why)
            return
        self.preview.put(message.preview, message.citation, key)
        self.list.set_freshness(key, message.preview.freshness)
