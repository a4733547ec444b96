"""Lessons: what agents learned, where it came from, and the keys that throw out what was wrongly learned.

What is marked for deletion is deleted by one key after one question, and comes back by another: a review of
fifty lessons takes a key for each.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.message import Message

from engine.errors import NoctuaryError
from engine.text.amounts import count
from tui.keymap import bindings
from tui.messages import Flash
from tui.panes import lessons_work as work
from tui.panes.lessons_text import View, brain_name
from tui.panes.lessons_view import LessonsView
from tui.screens.ask_line import AskLine
from tui.screens.dialog import Confirm
from tui.text import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.binding import BindingType
    from textual.worker import Worker

    from engine import Engine
    from engine.memory.model import Distilled, Lesson, SynthesisStep

SEEN_WHOLE = 60
"""Characters of a lesson that are seen in the line where it is edited; a longer one stands above it too."""

OF_LESSONS = frozenset({"lessons.delete", "lessons.unmark", "lessons.edit", "lessons.pin"})
OF_CLUSTERS = frozenset({"lessons.nothing"})
"""Actions that need a row of that kind."""


class LessonsPane(LessonsView):
    """The review."""

    class Step(Message):
        """How far a synthesis is."""

        def __init__(self, step: SynthesisStep) -> None:
            super().__init__()
            self.step = step

    class Learnt(Message):
        """A synthesis has ended; how, in a sentence."""

        def __init__(self, said: str, *, error: bool = False) -> None:
            super().__init__()
            self.said = said
            self.error = error

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("lessons")]
    view_hints: ClassVar[Mapping[View, tuple[str, ...]]] = {
        View.LESSONS: ("lessons.delete", "lessons.commit", "lessons.edit", "lessons.pin", "list.filter"),
        View.WAITING: (
            "lessons.distil",
            "lessons.nothing",
            "lessons.synthesize",
            "list.open",
            "lessons.view",
        ),
        View.TOMBSTONES: ("lessons.unmark", "list.filter", "list.mark", "list.open", "lessons.tombstones"),
    }
    hints: tuple[str, ...] = view_hints[View.LESSONS]
    view_labels: ClassVar[Mapping[View, Mapping[str, str]]] = {
        View.LESSONS: {},
        View.WAITING: {"list.open": "turns"},
        View.TOMBSTONES: {"lessons.unmark": "bring back", "lessons.tombstones": "lessons"},
    }

    def __init__(self) -> None:
        super().__init__()
        self._deleted: list[list[int]] = []
        """What was deleted here, commit by commit."""
        self._synthesis: Worker[None] | None = None

    def label(self, action: str) -> str:
        """What an action is called in this view."""
        return self.view_labels[self.view].get(action) or super().label(action)

    def unavailable(self, action: str) -> str:
        """Why a key does nothing now."""
        return self._not_of_this(action) or self._nothing_for(action) or super().unavailable(action)

    def _not_of_this(self, action: str) -> str:
        """Why an action is not for what is shown, or for its row."""
        keys, row = self.host.keys, self.list.current
        if action in OF_LESSONS and self.view is View.WAITING:
            return f"A cluster is no lesson yet: {keys.shown('lessons.view')} shows the next view"
        if action in OF_CLUSTERS and self.view is not View.WAITING:
            return f"That is for clusters: {keys.shown('lessons.distil')} shows those that wait"
        if action in OF_LESSONS | OF_CLUSTERS and row is None:
            return "There is no row here"
        if action in OF_LESSONS - {"lessons.unmark"} and self.is_deleted(row):
            return f"It was deleted: {keys.shown('lessons.unmark')} brings it back"
        return ""

    def _nothing_for(self, action: str) -> str:
        """Why there is nothing to be deleted or brought back."""
        if action == "lessons.commit" and not len(self.doomed):
            return (
                f"Nothing is marked for deletion: {self.host.keys.shown('lessons.delete')} marks the lesson"
            )
        if action == "lessons.undo" and not self._deleted:
            return "Nothing was deleted here since the console was opened"
        return ""

    def _chosen(self) -> list[str]:
        """The keys of the marked rows, else of the row under the cursor."""
        row = self.list.current
        return [*self.marks] or ([row.key] if row is not None else [])

    # Deleting --------------------------------------------------------------------------------

    def do_delete(self) -> None:
        """Mark for deletion and go on; where rows are marked, take all of them."""
        self._doom(set(self._chosen()) - set(self.doomed))

    def do_unmark(self) -> None:
        """Not for deletion after all, and go on; a deleted lesson is brought back."""
        if self.view is View.TOMBSTONES or self.is_deleted(self.list.current):
            self._lift([work.number(key) for key in self._chosen()])
        else:
            self._doom(set(self._chosen()) & set(self.doomed))

    def _doom(self, keys: set[str]) -> None:
        """Turn the sign of these rows; the next is looked at unless it was about the marks."""
        self.doomed.toggle_all(keys)  # all of them have the sign, or none has
        if len(self.marks):
            self.marks.clear()
        else:
            self.do_down()  # before the rows are drawn: what is left need not be described once more
        if self.snapshot is not None:
            self.list.put(self.rows(self.snapshot))
            self._marks_changed()

    def do_commit(self) -> None:
        """Delete what is marked for it, after a yes."""
        ids = [work.number(key) for key in self.doomed]
        back = self.host.keys.shown("lessons.undo")
        detail = f"What says the same is not learned again. {back} brings them back."
        question = Confirm(f"Delete {count(len(ids), 'lesson')}?", "lessons.commit", detail=detail)
        self.app.push_screen(question, lambda yes: self._delete(ids) if yes else None)

    def _delete(self, ids: Sequence[int]) -> None:
        def said(deleted: list[int]) -> str:
            self._gone(deleted, ids)
            again = f" · {self.host.keys.shown('lessons.undo')} brings back" if deleted else ""
            return f"{_lessons(deleted)} deleted{again}"

        self.command(lambda engine: engine.memory.lessons.delete(ids, actor=work.HUMAN), "delete", said)

    def _gone(self, deleted: list[int], wanted: Sequence[int]) -> None:
        """Deleted lessons have no marks any more, and can be brought back together."""
        keys = [f"L{each}" for each in wanted]
        self.doomed.forget(keys)
        self.marks.forget(keys)
        if deleted:
            self._deleted.append(deleted)
        self.changed()

    def do_undo(self) -> None:
        """Bring back what was deleted last."""
        self._lift(self._deleted[-1])

    def _lift(self, ids: Sequence[int]) -> None:
        def said(lifted: list[int]) -> str:
            self._deleted = [batch for each in self._deleted if (batch := [i for i in each if i not in ids])]
            self.marks.forget([f"L{each}" for each in ids])
            self.changed()
            return (
                f"{_lessons(lifted)} brought back" if lifted else "They live already: nothing to bring back"
            )

        self.command(lambda engine: engine.memory.lessons.lift(ids, actor=work.HUMAN), "lift", said)

    def do_delete_named(self) -> None:
        """Ask for references, and delete what they name without showing it."""
        dialog = AskLine(
            "Delete a lesson by its reference",
            work.delete_named,
            enter="deletes it",
            placeholder="L12, or L12 L15 and then why",
            about="Its words are not shown. It leaves a tombstone, and can be brought back.",
        )
        self.app.push_screen(dialog, self._named_gone)

    def _named_gone(self, deleted: list[int] | None) -> None:
        if deleted:
            self._gone(deleted, deleted)
            back = self.host.keys.shown("lessons.undo")
            self.flash(f"{work.named(deleted)} deleted · {back} brings back")

    # Changing --------------------------------------------------------------------------------

    def do_edit(self) -> None:
        """Give the lesson another wording."""
        lesson = self.lesson(self.list.current)
        if lesson is None:
            return

        async def act(engine: Engine, typed: str) -> Lesson:
            return await engine.memory.lessons.edit(lesson.id, typed, actor=work.HUMAN)

        whole = f"{lesson.text}\n" if len(lesson.text) > SEEN_WHOLE else ""
        dialog = AskLine(
            f"Edit {lesson.reference}",
            act,
            enter="keeps it",
            value=lesson.text,
            about=f"{whole}{brain_name(lesson)} · its turns, uses and history stay",
        )
        self.app.push_screen(dialog, self._edited)

    def _edited(self, lesson: Lesson | None) -> None:
        if lesson is not None:
            self.changed()
            self.flash(f"{lesson.reference} says now: {lesson.text}")

    def do_pin(self) -> None:
        """Pin, or let go where all are pinned."""
        keys = self._chosen()
        rows = [lesson for row in self.list.rows if row.key in keys and (lesson := self.lesson(row))]
        pinned = not (rows and all(lesson.pinned for lesson in rows))
        ids = [work.number(key) for key in keys]

        def said(changed: list[int]) -> str:
            self.marks.forget(keys)
            self.changed()
            return f"{_lessons(changed)} {'pinned' if pinned else 'let go'}"

        self.command(lambda engine: engine.memory.lessons.pin(ids, pinned, actor=work.HUMAN), "pin", said)

    # Learning --------------------------------------------------------------------------------

    @property
    def learning(self) -> bool:
        """Whether a synthesis is under way."""
        return self._synthesis is not None and not self._synthesis.is_finished

    def do_synthesize(self) -> None:
        """Learn from what was said since the last run; or cancel that."""
        engine = self.host.engine
        if self.learning:
            self.cancel_learning()
        elif engine is None:
            self.flash("The database is not open yet")
        else:
            self._tell("Learning…")
            self._synthesis = self.host.spawn(self._learn(engine), "lessons.learn", "learn")

    def cancel_learning(self) -> None:
        """What was distilled already stays."""
        if self._synthesis is not None:
            self._synthesis.cancel()

    async def _learn(self, engine: Engine) -> None:
        try:
            runs = await engine.memory.synthesis.run_all(
                actor=work.HUMAN, on_step=lambda step: self.post_message(self.Step(step))
            )
        except asyncio.CancelledError:
            self.post_message(self.Learnt("Cancelled: what was learned until then stays"))
            raise
        except NoctuaryError as error:
            self.post_message(self.Learnt(f"{error.title}: {error}", error=True))
        else:
            self.post_message(self.Learnt(work.outcome_line(runs)))

    @on(Step)
    def _step(self, message: Step) -> None:
        message.stop()
        if self.learning:
            self._tell(f"Learning · {work.step_line(message.step)}")

    def _tell(self, text: str) -> None:
        cancels = self.host.keys.shown("list.clear")
        self.progress.put(line(f"◐ {text} · {cancels} cancels", "$text-accent"))
        self.progress.display = True

    @on(Learnt)
    def _learnt(self, message: Learnt) -> None:
        message.stop()
        sign, style = ("✗ ", "$text-error") if message.error else ("✓ ", "dim")
        self.progress.put(line(sign + message.said, style))
        self.post_message(Flash(message.said, error=message.error))
        self.changed()

    def do_clear(self) -> None:
        """Drop the filter, else cancel the learning, else drop the marks."""
        if self.learning and not self.filter_text and not self._filter.display:
            self.cancel_learning()
        else:
            super().do_clear()
            self.progress.display = self.learning

    # Distilling by hand ----------------------------------------------------------------------

    def do_distil(self) -> None:
        """Go to the clusters that wait; there, type the rule of the one under the cursor."""
        row = self.list.current
        if self.view is not View.WAITING:
            self.turn_to(View.WAITING)
        elif row is None:
            self.flash(self.nothing().splitlines()[0])
        else:
            self.read_about(row.key, self._ask_rule)

    def _ask_rule(self, about: work.About) -> None:
        async def act(engine: Engine, typed: str) -> Distilled:
            return await engine.memory.synthesis.distil(work.number(about.key), typed, actor=work.HUMAN)

        nothing, cluster = self.host.keys.shown("lessons.nothing"), self.cluster(self.list.current)
        whose = f" of {brain_name(cluster)}" if cluster is not None else ""
        dialog = AskLine(
            f"The rule of cluster {about.key}{whose}",
            act,
            enter="keeps it",
            placeholder="one rule, as: Use pnpm, not npm.",
            about=f"What shall hold from now on? If it teaches nothing: Esc, then {nothing}.",
            lines=self.lines(about),
        )
        self.app.push_screen(dialog, self._distilled)

    def _distilled(self, outcome: Distilled | None) -> None:
        if outcome is not None:
            self.changed()
            self.flash(work.distilled_line(outcome))

    def do_nothing(self) -> None:
        """Keep that the clusters teach nothing, after a yes."""
        keys = self._chosen()
        whose = f"cluster {keys[0]}" if len(keys) == 1 else count(len(keys), "cluster")
        detail = "Its turns stay, and are still recalled; no rule is made of them."
        question = Confirm(f"Nothing durable in {whose}?", "lessons.nothing", detail=detail)
        self.app.push_screen(question, lambda yes: self._held_nothing(keys) if yes else None)

    def _held_nothing(self, keys: Sequence[str]) -> None:
        async def act(engine: Engine) -> Distilled:
            outcomes = [
                await engine.memory.synthesis.distil(work.number(key), None, actor=work.HUMAN) for key in keys
            ]
            return outcomes[-1]

        def said(outcome: Distilled) -> str:
            self.marks.forget(keys)
            self.changed()
            return work.distilled_line(outcome)

        self.command(act, "nothing", said)


def _lessons(ids: Sequence[int]) -> str:
    return work.named(ids) if ids else "Nothing was to be changed: no lesson"
