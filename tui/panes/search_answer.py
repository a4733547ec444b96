"""Answers in the search pane: asked for by a key, written beside or below the citations, and tied to them.

While an answer stands there, its passages come first in the list, with the numbers its marks have. It belongs
to the question it was asked with: another one leaves it where it is, and its passages where they rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.notes.answered import Outcome
from engine.notes.model import NO_EVIDENCE
from tui.live import REDUCED_REPAINTS, REPAINTS
from tui.panes import answer_work, search_work
from tui.panes.search_text import Question
from tui.panes.search_view import SearchView
from tui.widgets.answer_text import Shown, Stage, copied
from tui.widgets.citation_list import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.timer import Timer

    from engine.notes.model import Citation

GROUP = "search.answer"
"""The group of the worker that asks."""

TICK_SECONDS = 1.0
"""Between two looks at the clock while an answer is written; then there is none."""


SHARE = 0.6
"""Of the pane's lines that an answer may take."""


class SearchAnswer(SearchView):
    """The view with an answer in it."""

    def __init__(self) -> None:
        super().__init__()
        self._answer_to = Question()
        self._ask_number = 0
        self._asked_at = 0.0
        self._clock: Timer | None = None

    def on_resize(self) -> None:
        """The answer leaves room for citations, or for the preview."""
        self.answer.fit(int(self.size.height * SHARE))

    # Asking ----------------------------------------------------------------------------------

    def why_not_ask(self) -> str:
        """Why nothing can be asked now; empty when it can."""
        if self.question.empty:
            return f"There is no question yet: {self.host.keys.shown('list.filter')} goes to the search line"
        return "The database is not open yet" if self.host.engine is None else ""

    @property
    def answers_this(self) -> bool:
        """Whether what stands here was asked with the question as it is now."""
        return self.answer.open and self._answer_to == self.question

    @property
    def answered_already(self) -> bool:
        """Whether the question as it is now has an answer, or will soon: it need not be asked again."""
        shown = self.answer.shown
        whole = shown.answer is not None and shown.answer.outcome is Outcome.ANSWER
        return self.answers_this and (shown.running or whole)

    def ask_model(self) -> None:
        """Have the question answered; an answer under way to another one is cancelled."""
        engine = self.host.engine
        if engine is None:
            return
        self._stop_clock()
        self._ask_number += 1
        self._answer_to, self._asked_at = self.question, self._now()
        self._clock = self.set_interval(TICK_SECONDS, self._tick)
        self._put_answer(Shown(Stage.SEARCHING))
        rate = REDUCED_REPAINTS if self.host.settings.reduced_repaint else REPAINTS
        self.host.spawn(
            answer_work.ask(self, engine, self.question, self._ask_number, rate), GROUP, "answer the question"
        )

    def cancel_answer(self) -> None:
        """End what is being written; what was written stays."""
        self.host.workers.cancel_group(self.host, GROUP)
        self._ask_number += 1
        self._stop_clock()
        self._put_answer(replace(self.answer.shown, stage=Stage.CANCELLED, seconds=self._seconds()))

    def close_answer(self) -> None:
        """Take the answer away; the citations stand as they were found."""
        focused = self.answer.lines.has_focus
        self.answer.close()
        self._arrange()
        if focused:
            (self.list if self.list.citations else self).focus()

    def _now(self) -> float:
        return self.host.now().timestamp()

    def _seconds(self) -> float:
        return max(self._now() - self._asked_at, 0.0)

    def _tick(self) -> None:
        self._put_answer(self.answer.shown)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.stop()
            self._clock = None

    # What the worker tells -------------------------------------------------------------------

    def on_passages_found(self, message: answer_work.PassagesFound) -> None:
        """The passages come first in the list."""
        message.stop()
        if message.number == self._ask_number:
            citations = message.result.citations
            self._put_answer(replace(self.answer.shown, stage=Stage.WRITING, citations=citations))
            self._arrange()

    def on_answer_grown(self, message: answer_work.AnswerGrown) -> None:
        """More is written."""
        message.stop()
        if message.number == self._ask_number and message.text:
            self._put_answer(replace(self.answer.shown, text=message.text, marks=message.marks))

    def on_answered(self, message: answer_work.Answered) -> None:
        """It is whole, or there is none."""
        message.stop()
        if message.number != self._ask_number:
            return
        self._stop_clock()
        answer, shown = message.answer, self.answer.shown
        if answer.outcome is Outcome.NO_EVIDENCE:
            self.close_answer()
            self.flash(NO_EVIDENCE)
            return
        text, marks = shown.text, shown.marks
        if answer.text is not None:
            text, marks = answer.text, answer.marks
        self._put_answer(replace(shown, stage=Stage.DONE, text=text, marks=marks, answer=answer))

    def on_ask_failed(self, message: answer_work.AskFailed) -> None:
        """The search failed, so there is nothing to show."""
        message.stop()
        if message.number == self._ask_number:
            self._stop_clock()
            self.close_answer()
            self.flash(f"{message.error.title}: {message.error}", error=True)

    def _put_answer(self, shown: Shown) -> None:
        if shown.running:
            shown = replace(shown, seconds=self._seconds())
        self.answer.put(shown, self.host.keys.shown("list.clear"))

    # Answer and citations --------------------------------------------------------------------

    def arranged(self, citations: Sequence[Citation]) -> Sequence[Citation]:
        """What the answer is written from first, then the others."""
        if not self.answers_this:
            return citations
        first = {key_of(each): each for each in self.answer.shown.citations}
        return [*first.values(), *(each for each in citations if key_of(each) not in first)]

    def _arrange(self) -> None:
        """Lay the list out anew, with the numbers of the answer's passages; the cursor stays on its row."""
        sources = self.answer.shown.citations if self.answer.open else ()
        self.list.numbers = {key_of(each): number for number, each in enumerate(sources, 1)}
        result = self.snapshot.result if self.snapshot is not None else None
        if result is not None and result.citations:
            self.list.put(self.arranged(result.citations), stay=True)
        self.list.redraw()

    def copy_answer(self) -> None:
        """Copy the answer with its sources."""
        shown = self.answer.shown
        text = copied(shown, [self.told(citation) for citation in shown.citations])
        self.host.spawn(
            search_work.copy_text(self, text, "the answer and its sources"), "search.copy", "copy"
        )

    def told(self, citation: Citation) -> str:
        """The citation as it is copied: with its whole path, where another folder may have the same."""
        index = self.host.status.index if self.host.status is not None else None
        one = index is not None and index.folders == 1
        return citation.reference if one else str(citation.folder / citation.reference)
