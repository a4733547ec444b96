"""What every pane is: a number, a title, hints, something to focus, and a snapshot it shows.

A pane never waits: `fetch` runs in a worker and answers with a frozen snapshot, which `show` draws. A
newer wish never cancels a fetch that is under way for live changes (under a full index it would never
finish); it is remembered and fetched next. Only a changed question (`restart=True`) cancels.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, cast

from textual.containers import Vertical
from textual.message import Message

from engine.errors import NoctuaryError
from tui.actions import REGISTRY, Actor
from tui.messages import Flash
from tui.text import content
from tui.widgets.label import Label

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from textual.app import ComposeResult
    from textual.widget import Widget

    from engine import Engine
    from tui.app import NoctuaryApp

S = TypeVar("S")
R = TypeVar("R")


class Shown(StrEnum):
    """What a pane shows now; also its CSS class."""

    EMPTY = "-empty"
    DATA = "-data"
    FAILED = "-failed"


class Fetched(Message):
    """A snapshot is here, for the pane that asked for it."""

    def __init__(self, snapshot: object) -> None:
        super().__init__()
        self.snapshot = snapshot


class FetchFailed(Message):
    """The engine could not answer; the last snapshot stays on the screen and is called stale."""

    def __init__(self, error: NoctuaryError) -> None:
        super().__init__()
        self.error = error


class Pane(Actor, Vertical, Generic[S]):
    """One numbered pane. Subclasses set the class variables and fill in `body`, `fetch` and `show`."""

    number: ClassVar[int]
    title: ClassVar[str]
    scope: ClassVar[str]
    """First part of the ids of the pane's actions, and the id of the widget."""
    topics: frozenset[str] = frozenset()
    """Topics of the change feed after which the pane fetches again."""
    reading: ClassVar[str] = "Reading…"
    """What stands there until the first snapshot is here."""
    hints: tuple[str, ...] = ()
    """Ids of the five or six actions in the footer."""
    labels: ClassVar[Mapping[str, str]] = {}
    """What an action is called here, where its own label says something else."""

    def __init__(self) -> None:
        super().__init__(id=self.scope)
        self.snapshot: S | None = None
        self.dirty = True
        self.fetching = False
        self._again = False
        self._banner = Label(classes="banner", grows=True)
        self._empty = Label(classes="empty", grows=True)

    @property
    def host(self) -> NoctuaryApp:
        """The application, typed."""
        return cast("NoctuaryApp", self.app)

    @property
    def fetch_group(self) -> str:
        """The group of the pane's fetching workers."""
        return f"{self.scope}.fetch"

    @property
    def active(self) -> bool:
        """Whether this is the pane on the screen."""
        return self.host.active_pane is self

    def compose(self) -> ComposeResult:
        """A banner for trouble, what stands here when there is nothing, and the body."""
        yield self._banner
        yield self._empty
        yield from self.body()

    def on_mount(self) -> None:
        """Until something was fetched there is nothing to show."""
        self.shown(Shown.EMPTY, "Opening the database…")

    # To be filled in by each pane -------------------------------------------------------------

    def body(self) -> ComposeResult:
        """The widgets of the pane; those that make no sense without data carry the class `body`."""
        yield from ()

    async def fetch(self, engine: Engine) -> S:
        """Ask the engine for what the pane shows. Runs in a worker and touches no widget."""
        raise NotImplementedError

    def show(self, snapshot: S) -> None:
        """Draw a snapshot: only what differs, without moving the cursor."""
        raise NotImplementedError

    def label(self, action: str) -> str:
        """What the footer and the palette call an action in this pane."""
        return self.labels.get(action) or REGISTRY[action].label

    def focus_target(self) -> Widget | None:
        """The widget that takes the keys when the pane comes up."""
        return None

    def arrive(self, kind: str) -> None:
        """Another pane sends the user here because of `kind`: show that."""

    def redraw(self) -> None:
        """Draw again what depends on the clock."""

    def status_read(self) -> None:
        """The status of the notes is new."""

    # States ----------------------------------------------------------------------------------

    def shown(self, state: Shown, text: str = "") -> None:
        """Switch between no data, data and failed; `text` is the sentence for the first and last."""
        for each in Shown:
            self.set_class(each is state, each)
        if state is Shown.EMPTY:
            self._empty.put(content(text))
        if state is Shown.FAILED:
            self._banner.put(content(text, "$text-error"))
            self.set_class(self.snapshot is not None, Shown.DATA)

    def activate(self) -> None:
        """Called when the pane comes up: take the focus, and fetch what changed meanwhile."""
        target = self.focus_target()
        if target is not None:
            target.focus()
        if self.dirty:
            self.request()

    def leave(self) -> None:
        """Called when another pane comes up instead."""

    async def leaving(self, engine: Engine) -> None:
        """Called when the console ends while the pane is up: for what must be written down of the visit."""

    def changed(self) -> None:
        """Rows of the pane changed: fetch now if it is on the screen, else when it comes up."""
        self.dirty = True
        if self.active:
            self.request()

    # Fetching --------------------------------------------------------------------------------

    def request(self, *, restart: bool = False) -> None:
        """Fetch. A fetch under way is let finish and followed by one more, unless `restart`."""
        if self.host.engine is None:
            return
        if self.fetching and not restart:
            self._again = True
            return
        self._again = False
        self.dirty = False
        self.fetching = True
        if self.snapshot is None:
            self.shown(Shown.EMPTY, self.reading)
        self.host.spawn(self._fetch(self.host.engine), self.fetch_group, f"read {self.title.lower()}")

    async def _fetch(self, engine: Engine) -> None:
        try:
            snapshot = await self.fetch(engine)
        except NoctuaryError as error:
            self.post_message(FetchFailed(error))
        else:
            self.post_message(Fetched(snapshot))

    def _fetched(self) -> None:
        self.fetching = False
        if self._again:
            self.request()

    def on_fetched(self, message: Fetched) -> None:
        """Show what came."""
        message.stop()
        self.snapshot = cast("S", message.snapshot)
        self.shown(Shown.DATA)
        with self.app.batch_update():
            self.show(self.snapshot)
        self._fetched()

    def on_fetch_failed(self, message: FetchFailed) -> None:
        """Keep what is there and say that it is stale."""
        message.stop()
        self.dirty = True
        stale = "Stale: " if self.snapshot is not None else ""
        self.shown(Shown.FAILED, f"✗ {stale}{message.error.title}: {message.error}")
        self.host.engine_failed(message.error)
        self._fetched()

    # Actions ---------------------------------------------------------------------------------

    def refused(self, reason: str) -> None:
        """An action cannot be used now."""
        self.flash(reason)

    def flash(self, text: str, *, error: bool = False) -> None:
        """One line in place of the hints, until the next key."""
        self.post_message(Flash(text, error=error))

    def command(self, work: Callable[[Engine], Awaitable[R]], name: str, said: Callable[[R], str]) -> None:
        """Run a command of the engine in a worker and flash what `said` makes of its answer."""
        engine = self.host.engine
        if engine is None:
            self.flash("The database is not open yet")
            return

        async def run() -> None:
            try:
                answer = await work(engine)
            except NoctuaryError as error:
                self.post_message(Flash(f"{error.title}: {error}", error=True))
            else:
                self.post_message(Flash(said(answer)))

        self.host.spawn(run(), f"{self.scope}.{name}", name)
