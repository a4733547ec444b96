"""What the Lessons pane shows: three views in one list, and below it everything about the row.

Each view keeps its place while another is shown: its cursor, its marks, its filter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, cast

from textual.message import Message

from engine.errors import NoctuaryError
from engine.memory.model import LessonState
from engine.text.amounts import count
from tui.messages import Changed, Flash
from tui.panes import lessons_work as work
from tui.panes.lessons_text import (
    View,
    cluster_reference,
    cluster_row,
    columns,
    facts,
    lesson_lines,
    lesson_row,
    tombstone_row,
    totals_line,
    turn_lines,
)
from tui.panes.window_pane import WindowPane
from tui.screens.dialog import ReadDialog
from tui.text import content, line
from tui.widgets.label import Label
from tui.widgets.marks import Marks
from tui.widgets.turn_rows import Indented, TurnRows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from textual.app import ComposeResult
    from textual.content import Content

    from engine import Engine
    from engine.memory.model import Cluster, Lesson
    from tui.panes.base import Fetched
    from tui.screens.main import MainScreen
    from tui.widgets.row_list import Row


@dataclass
class Place:
    """Where a view was left."""

    marks: Marks = field(default_factory=Marks)
    filter_text: str = ""
    first: int = 0
    at: str = ""
    """Key of the row the cursor stood on."""


class LessonsView(WindowPane[work.LessonsSnapshot]):
    """Reads and shows."""

    class Read(Message):
        """Everything about a row is here, for whoever wanted it."""

        def __init__(self, about: work.About, then: Callable[[work.About], None]) -> None:
            super().__init__()
            self.about = about
            self.then = then

    number = 5
    title = "Lessons"
    scope = "lessons"
    topics = frozenset({"lesson", "cluster", "synthesis_run"})
    columns = columns(View.LESSONS, brains=False)
    filter_takes = "words core:x user:x age:>30d unused new expired deleted all L12"
    view_hints: ClassVar[Mapping[View, tuple[str, ...]]]
    hints: tuple[str, ...]

    def __init__(self) -> None:
        super().__init__()
        self.view = View.LESSONS
        self.places = {view: Place() for view in View}
        self.places[View.LESSONS].marks = self.marks
        self.doomed = Marks()
        """Lessons that are marked for deletion."""
        self.order: work.Order = "newest"
        self.brains: set[int] = set()
        """Brains that were seen: where there are several, each row names its own."""
        self.turns = TurnRows()
        self.turns.can_focus = False
        self._views = Label(classes="totals")
        self.progress = Label(classes="problems", grows=True)
        self._lessons: dict[str, Lesson] = {}
        self._clusters: dict[str, Cluster] = {}
        self._reading = False
        self._unread = False

    def above(self) -> ComposeResult:
        """The views, and how far a synthesis is."""
        yield self._views
        yield self.progress

    def below(self) -> ComposeResult:
        """Where the row under the cursor came from."""
        yield self.turns

    def on_mount(self) -> None:
        """Until something is read there are no counts."""
        self._views.put(totals_line(None, self.view))

    # Coming and going ------------------------------------------------------------------------

    def arrive(self, kind: str) -> None:
        """The inbox sends to what is new, what expires soon, and what waits."""
        self.turn_to(View.WAITING if kind == "clusters_waiting" else View.LESSONS)
        if kind in {"lessons_new", "lessons_expiring"}:
            self.order = "expiring" if kind == "lessons_expiring" else "newest"
            self.take_filter("new" if kind == "lessons_new" else "")
            self.first, self.dirty = 0, True

    def leave(self) -> None:
        """What was new was seen."""
        engine = self.host.engine
        if engine is not None and self.snapshot is not None:
            self.dirty = True
            self.host.spawn(self._visited(engine), "lessons.visit", "keep when the lessons were seen")

    async def leaving(self, engine: Engine) -> None:
        """The same at the end of the console."""
        if self.snapshot is not None:
            await engine.memory.lessons.visit()

    async def _visited(self, engine: Engine) -> None:
        try:
            await engine.memory.lessons.visit()
        except NoctuaryError as error:
            self.post_message(Flash(f"{error.title}: {error}", error=True))
        else:
            # No row of a lesson changed, and yet the Inbox counts fewer that are new.
            self.host.post_message(Changed(frozenset({"lesson"})))

    # Views -----------------------------------------------------------------------------------

    def turn_to(self, view: View) -> None:
        """Show another view, where it was left, and read it anew."""
        if view is self.view:
            return
        left, place = self.places[self.view], self.places[view]
        left.filter_text, left.first = self.filter_text, self.first
        left.at = self.list.current.key if self.list.current is not None else ""
        self.view, self.hints = view, self.view_hints[view]
        self.set_class(view is View.WAITING, "-waiting")  # a cluster has no words but those of its turns
        self.marks = self.list.marks = place.marks
        place.marks.listener = self.list.refresh
        self.first, self.snapshot, self.dirty = place.first, None, True
        self.take_filter(place.filter_text)
        self.list.put(())  # no row of another view may be drawn in these columns
        self.list.columns = columns(view, brains=len(self.brains) > 1)
        self.list.refresh()
        if self.active:
            cast("MainScreen", self.screen).show_hints()
            self.request(restart=True)

    def do_view(self) -> None:
        """Show the next view."""
        order = [*View]
        self.turn_to(order[(order.index(self.view) + 1) % len(order)])

    def do_tombstones(self) -> None:
        """Show what was deleted, or the lessons again."""
        self.turn_to(View.LESSONS if self.view is View.TOMBSTONES else View.TOMBSTONES)

    def do_order(self) -> None:
        """Order by the next."""
        orders = work.ORDERS
        self.order = orders[(orders.index(self.order) + 1) % len(orders)]
        self.from_the_top()

    # Reading ---------------------------------------------------------------------------------

    def asked(self) -> work.Asked:
        """What is asked for now."""
        order = self.order if self.view is View.LESSONS else "newest"
        return work.Asked(self.view, self.filter_text, order, self.first)

    async def fetch(self, engine: Engine) -> work.LessonsSnapshot:
        """A window of the view."""
        return await work.read(engine, self.asked())

    async def everything(self, engine: Engine) -> Mapping[str, str]:
        """All lessons that match."""
        return await work.everything(engine, self.asked())

    def window(self, snapshot: work.LessonsSnapshot) -> tuple[int, bool]:
        """Where it stands. Of clusters only the first are read: who distils them goes from the top."""
        return snapshot.offset, snapshot.more and self.view is not View.WAITING

    def on_fetched(self, message: Fetched) -> None:
        """What another view asked for is dropped: it asks anew when it is shown again."""
        snapshot = message.snapshot
        if isinstance(snapshot, work.LessonsSnapshot) and snapshot.asked.view is not self.view:
            message.stop()
            message.prevent_default()

    # Showing ---------------------------------------------------------------------------------

    def show(self, snapshot: work.LessonsSnapshot) -> None:
        """Counts and rows, and the cursor where it was when the view was left."""
        self._lessons = {each.reference: each for each in snapshot.lessons}
        self._clusters = {cluster_reference(each): each for each in snapshot.clusters}
        many = len(self.brains) > 1
        self.brains |= {each.brain for each in snapshot.lessons} | {each.brain for each in snapshot.clusters}
        if many != (len(self.brains) > 1):
            self.list.columns = columns(self.view, brains=True)
            self.list.refresh()
        self._views.put(totals_line(snapshot.counts, self.view))
        super().show(snapshot)
        place = self.places[self.view]
        keys = [row.key for row in self.list.rows]
        if place.at in keys:
            self.list.move_to(keys.index(place.at))
        place.at = ""

    def rows(self, snapshot: work.LessonsSnapshot) -> Sequence[Row]:
        """One row a lesson or cluster."""
        now, brains = self.host.now(), len(self.brains) > 1
        if self.view is View.WAITING:
            return [cluster_row(each, now, brains=brains) for each in snapshot.clusters]
        if self.view is View.TOMBSTONES:
            return [tombstone_row(each, now, brains=brains) for each in snapshot.lessons]
        return [
            lesson_row(each, now, doomed=each.reference in self.doomed, brains=brains)
            for each in snapshot.lessons
        ]

    def summary(self, snapshot: work.LessonsSnapshot) -> Content:
        """What is shown, in which order, and what is marked."""
        noun = {View.LESSONS: "lesson", View.WAITING: "cluster", View.TOMBSTONES: "tombstone"}[self.view]
        shown = len(snapshot.lessons) + len(snapshot.clusters)
        last = snapshot.offset + shown
        told = count(snapshot.total, noun)
        if shown < snapshot.total:
            told = f"{noun}s {snapshot.offset + 1:,}-{last:,} of {snapshot.total:,}"
        commits = self.host.keys.shown("lessons.commit")
        parts = [
            told,
            work.ORDER_NAMES[self.order] if self.view is View.LESSONS else "",
            f"with “{self.filter_text}”" if self.filter_text else "",
            f"{len(self.doomed):,} to delete: {commits} does it" if len(self.doomed) else "",
            self.marked().removeprefix(" · "),
        ]
        told = " · ".join(part for part in parts if part)
        if snapshot.trouble:
            return line(f"✗ {snapshot.trouble} · {told}", "$text-error")
        return line(told, "dim")

    def nothing(self) -> str:
        """How lessons come about."""
        keys = self.host.keys
        if self.view is View.TOMBSTONES:
            return "Nothing was deleted."
        if self.view is View.WAITING:
            return f"No cluster waits.\n{keys.shown('lessons.synthesize')} looks at what was said since."
        told = [
            "No lessons yet.",
            "They are learned from turns, which agents record by MCP or HTTP, and which",
            f"noctuary import brings in. {keys.shown('lessons.synthesize')} learns from what was said.",
        ]
        if not self.host.settings.llm_provider:
            told += [
                "No language model is set: what was said is put into clusters, which wait.",
                f"{keys.shown('lessons.distil')} goes to them to type the rules; an agent can do it by MCP.",
            ]
        return "\n".join(told)

    def describe(self, row: Row) -> Content | None:
        """The rule in full, and what is known of it."""
        lesson = self._lessons.get(row.key)
        if lesson is None:
            return None
        return line(lesson.text) + content("\n") + line(facts(lesson, self.host.now()), "dim")

    def subject(self, row: Row) -> str:
        """The rule."""
        lesson = self._lessons.get(row.key)
        return row.key if lesson is None else lesson.text

    def lesson(self, row: Row | None) -> Lesson | None:
        """The lesson of a row."""
        return None if row is None else self._lessons.get(row.key)

    def cluster(self, row: Row | None) -> Cluster | None:
        """The cluster of a row."""
        return None if row is None else self._clusters.get(row.key)

    # Everything about one --------------------------------------------------------------------

    def show_detail(self) -> None:
        """Describe the row, and below it its turns where there is room."""
        super().show_detail()
        self.look()

    def on_resize(self) -> None:
        """There may be room for the turns now."""
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Read about the row under the cursor: one reading at a time, and the last wish wins."""
        row = self.list.current
        if row is None:
            self.turns.put(())
        elif self._reading:
            self._unread = True
        elif self.turns.display:
            self._reading = self.read_about(row.key, self._looked)

    def read_about(self, key: str, then: Callable[[work.About], None]) -> bool:
        """Read everything about a row and hand it to `then`; whether it can be read."""
        engine = self.host.engine
        if engine is not None:
            self.host.spawn(
                self._read_about(engine, key, then), f"lessons.about.{then.__name__}", "read a row"
            )
        return engine is not None

    async def _read_about(self, engine: Engine, key: str, then: Callable[[work.About], None]) -> None:
        try:
            about = await work.about(engine, key)
        except NoctuaryError as error:
            about = work.About(key, why=f"{error.title}: {error}")
        self.post_message(self.Read(about, then))

    def on_lessons_view_read(self, message: Read) -> None:
        """Hand it on."""
        message.stop()
        message.then(message.about)

    def _looked(self, about: work.About) -> None:
        self._reading = False
        row = self.list.current
        if row is not None and row.key == about.key:
            self.turns.put(self.lines(about), about.key)
        if self._unread:
            self._unread = False
            self.look()

    def lines(self, about: work.About) -> list[Indented]:
        """Everything about a row, line by line."""
        now = self.host.now()
        if about.why:
            return [Indented(0, content(f"✗ {about.why}", "$text-error"))]
        if about.lesson is not None:
            return lesson_lines(about.lesson, now)
        cluster = self._clusters.get(about.key)
        error = cluster.error if cluster is not None else ""
        said = [Indented(0, content(f"✗ {error}", "$text-error"))] if error else []
        return [*said, *turn_lines(about.turns, now)]

    def do_open(self) -> None:
        """Everything about the row, alone on the screen."""
        row = self.list.current
        if row is not None:
            self.read_about(row.key, self._open)

    def _open(self, about: work.About) -> None:
        title = "Cluster" if about.lesson is None else "Lesson"
        self.app.push_screen(ReadDialog(f"{title} {about.key}", TurnRows(self.lines(about))))

    def do_preview_down(self) -> None:
        """Scroll the turns down."""
        self.turns.scroll_by(1)

    def do_preview_up(self) -> None:
        """Scroll them up."""
        self.turns.scroll_by(-1)

    def unavailable(self, action: str) -> str:
        """Where there is nothing to order or to scroll."""
        if action == "lessons.order" and self.view is not View.LESSONS:
            return "Only lessons have an order"
        if action in {"lessons.preview-down", "lessons.preview-up"} and not self.turns.display:
            return f"{self.host.keys.shown('list.open')} shows the turns: there is no room for them here"
        return super().unavailable(action)

    def is_deleted(self, row: Row | None) -> bool:
        """Whether a row is a tombstone."""
        lesson = self.lesson(row)
        return lesson is not None and lesson.state is LessonState.DELETED
