"""The Eval view: how well the search answers labelled questions, now and before, and which it does not.

Enter on a question opens it in Search. A run goes on in the background; Esc ends it, and then the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.message import Message
from textual.worker import get_current_worker

from engine.errors import NoctuaryError
from tui.keymap import bindings
from tui.screens.eval_text import COLUMNS, PAST, EvalSnapshot, described, headline, history, rows
from tui.screens.rows_dialog import RowsDialog
from tui.text import content
from tui.widgets.label import Label
from tui.widgets.row_list import RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine import Engine
    from engine.notes.evaluated import EvalAnswer, EvalStep

RUN = "eval.run"
"""The group of the worker that runs the questions."""


class EvalScreen(RowsDialog[str]):
    """The last run. Answers with the question that shall be searched."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog", "eval")]
    scope = "eval"

    class Read(Message):
        """The runs were read."""

        def __init__(self, snapshot: EvalSnapshot, said: str = "", *, after_run: bool = False) -> None:
            super().__init__()
            self.snapshot = snapshot
            self.said = said
            self.after_run = after_run

    class Failed(Message):
        """Why there is nothing to read, or no run."""

        def __init__(self, error: NoctuaryError, *, after_run: bool) -> None:
            super().__init__()
            self.error = error
            self.after_run = after_run

    class Step(Message):
        """How far a run is."""

        def __init__(self, step: EvalStep) -> None:
            super().__init__()
            self.step = step

    def __init__(self) -> None:
        super().__init__("Eval", RowList(COLUMNS))
        self._snapshot = EvalSnapshot(None)
        self._head = Label(grows=True)
        self._history = Label()
        self._detail = Label(classes="detail", grows=True)
        self.running = False

    def inside(self) -> ComposeResult:
        """The run above its questions."""
        yield self._head
        yield self._history
        yield self._rows
        yield self._detail

    def on_mount(self) -> None:
        """Read the runs."""
        self._rows.nothing = "Reading…"
        self._rows.put(())
        self._rows.focus()
        self._hint()
        self.host.spawn(self._read(self.host.engine), "eval", "read the runs")

    def _hint(self) -> None:
        keys = self.host.keys
        told = {"eval.run": "run again", "eval.open": "search it", "dialog.close": "close"}
        if self.running:
            told = {"dialog.close": "ends the run"}
        self.say(" · ".join(f"{keys.shown(action)} {label}" for action, label in told.items()))

    # Workers ---------------------------------------------------------------------------------

    async def _read(self, engine: Engine | None, said: str = "", *, after_run: bool = False) -> None:
        if engine is None:
            return
        try:
            last = await engine.evaluation.last()
            runs = await engine.evaluation.history(PAST, last.dataset) if last is not None else []
        except NoctuaryError as error:
            self.post_message(self.Failed(error, after_run=after_run))
        else:
            snapshot = EvalSnapshot(last, tuple(reversed(runs)))
            self.post_message(self.Read(snapshot, said, after_run=after_run))

    async def _run(self, engine: Engine) -> None:
        worker = get_current_worker()

        def tell(step: EvalStep) -> None:
            if not worker.is_cancelled:
                self.post_message(self.Step(step))

        try:
            run = await engine.evaluation.run(on_step=tell)
        except NoctuaryError as error:
            self.post_message(self.Failed(error, after_run=True))
        else:
            said = "The file was another when it was run before." if run.other_questions else ""
            await self._read(engine, said, after_run=True)

    # What they say ---------------------------------------------------------------------------

    @on(Read)
    def _show(self, message: Read) -> None:
        self._snapshot = message.snapshot
        self.running = self.running and not message.after_run
        with self.app.batch_update():
            self._head.put(headline(message.snapshot, self.host.now()))
            self._history.put(history(message.snapshot))
            self._rows.nothing = self._nothing()
            self._rows.put(rows(message.snapshot))
            self._describe()
        if message.said:
            self.say(message.said)
        else:
            self._hint()

    @on(Failed)
    def _fail(self, message: Failed) -> None:
        self.running = self.running and not message.after_run
        if self._snapshot.last is None:
            self._rows.nothing = self._nothing()
            self._rows.put(())
        self.say(f"{message.error.title}: {message.error}", error=True)

    @on(Step)
    def _tell(self, message: Step) -> None:
        if self.running:
            closing = self.host.keys.shown("dialog.close")
            self.say(
                f"Asking question {message.step.done:,} of {message.step.total:,} · {closing} ends the run"
            )

    def _nothing(self) -> str:
        keys = self.host.keys
        return (
            f"No run yet. In Search {keys.shown('search.label')} labels a search.\n"
            f"{keys.shown('eval.run')} then asks the labelled questions."
        )

    @on(RowList.Moved)
    def _describe(self) -> None:
        answer = self._current
        self._detail.put(described(answer) if answer is not None else content(""))

    @property
    def _current(self) -> EvalAnswer | None:
        row, last = self._rows.current, self._snapshot.last
        if row is None or last is None:
            return None
        return next((each for each in last.answers if each.id == row.key), None)

    # Keys ------------------------------------------------------------------------------------

    def unavailable(self, action: str) -> str:
        """Why a key does nothing now."""
        if action == "eval.open" and self._current is None:
            return "There is no question to search"
        if action == "eval.run" and self.host.engine is None:
            return "The database is not open yet"
        return "The questions are being asked" if action == "eval.run" and self.running else ""

    def do_run(self) -> None:
        """Ask the questions of the last file again."""
        engine = self.host.engine
        if engine is not None:
            self.running = True
            self._hint()
            self.host.spawn(self._run(engine), RUN, "ask the labelled questions")

    def do_open(self) -> None:
        """Search the question under the cursor."""
        answer = self._current
        if answer is not None:
            self.do_end()
            self.dismiss(answer.question)

    def do_end(self) -> None:
        """End a run that is under way."""
        self.host.workers.cancel_group(self.host, RUN)
        self.running = False

    def do_close(self) -> None:
        """End the run, else close."""
        if self.running:
            self.do_end()
            self.say("The run was ended; nothing of it is kept.")
        else:
            self.dismiss(None)

    @on(RowList.Chosen)
    def _chosen(self) -> None:
        self.action_act("eval.open")
