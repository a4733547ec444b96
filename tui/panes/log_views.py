"""The views of the Log pane: the log, searches and asks, tokens. None touches a widget.

Each keeps its place while another is shown: its cursor, its marks, its filter, and what was read last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from engine.notes.traced import Trace, TraceKind
from engine.text.amounts import count
from tui.panes.log_text import (
    TIME_WIDTH,
    model_name,
    query_detail,
    query_key,
    query_row,
    short_clock,
    today_line,
    tokens_detail,
    tokens_key,
    tokens_row,
)
from tui.text import content, line
from tui.widgets.marks import Marks
from tui.widgets.row_list import Column, Row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from textual.content import Content

    from engine import Engine
    from engine.activity import LogRecord
    from engine.language import LedgerRow
    from tui.app import NoctuaryApp

T = TypeVar("T")

LEVELS = (("debug", "all"), ("warning", "warnings and errors"), ("error", "errors"))
ORDER = ("debug", "info", "warning", "error", "critical")
TONES = {"debug": "muted", "warning": "warning", "error": "error", "critical": "error"}

KINDS = ((None, "all"), (TraceKind.SEARCH, "searches"), (TraceKind.ASK, "asks"))

QUERIES = 1_000
"""Queries held for the screen: the newest that match. The filter looks through all that are kept."""

DAYS = 30
"""Days of the ledger that are shown."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a view was told at one moment."""

    view: View[Any]
    items: tuple[Any, ...]


class View(ABC, Generic[T]):
    """One list of the pane: what it reads, and how that is told."""

    title: ClassVar[str]
    columns: ClassVar[tuple[Column, ...]]
    topics: ClassVar[frozenset[str]] = frozenset()
    hints: ClassVar[tuple[str, ...]]
    labels: ClassVar[Mapping[str, str]] = {}
    grows: ClassVar[bool] = True
    """Whether what is new comes last, and can be followed."""
    asks: ClassVar[bool] = False
    """Whether filter and level are the database's business: what is shown is not all there is."""
    levels: ClassVar[tuple[str, ...]] = ()
    """What `log.level` goes through, in words."""

    def __init__(self) -> None:
        self.following = self.grows
        self.level = 0
        self.marks = Marks()
        self.filter_text = ""
        self.at = ""
        """Key of the row the cursor stood on when another view was shown."""
        self.seen: Seen | None = None
        self._known: dict[str, T] = {}

    @abstractmethod
    async def fetch(self, engine: Engine, text: str) -> Sequence[T]:
        """What there is, the newest last where the view grows. Runs in a worker."""

    @abstractmethod
    def row(self, item: T, key: str, host: NoctuaryApp) -> Row:
        """An item as a row."""

    @abstractmethod
    def keyed(self, items: Sequence[T], text: str) -> dict[str, T]:
        """The items to be shown by the keys of their rows."""

    @abstractmethod
    def told(self, items: Sequence[T], shown: int, host: NoctuaryApp) -> tuple[str, str]:
        """What is shown, of how much; and the style of that."""

    @abstractmethod
    def nothing(self, host: NoctuaryApp) -> str:
        """The sentence when there are no rows."""

    @abstractmethod
    def describe(self, item: T) -> Content:
        """Everything about an item."""

    @abstractmethod
    def subject(self, item: T, row: Row) -> str:
        """What is copied of an item."""

    def query(self, item: T) -> str:  # noqa: ARG002  (only what was asked can be asked again)
        """The query an item can be opened as; empty when it is none."""
        return ""

    def rows(self, items: Sequence[T], text: str, host: NoctuaryApp) -> list[Row]:
        """One row an item that is to be shown."""
        self._known = self.keyed(items, text)
        return [self.row(item, key, host) for key, item in self._known.items()]

    def item(self, row: Row | None) -> T | None:
        """What a row is about."""
        return None if row is None else self._known.get(row.key)


class RecordsView(View["LogRecord"]):
    """The activity log."""

    title = "log"
    columns = (
        Column("Time", TIME_WIDTH),
        Column("Level", 7),
        Column("Source", 9),
        Column("What happened"),
    )
    hints = ("log.view", "log.follow", "log.level", "list.filter", "list.copy")
    levels = tuple(words for _, words in LEVELS)

    async def fetch(self, engine: Engine, text: str) -> Sequence[LogRecord]:  # noqa: ARG002
        """The records that are kept."""
        return engine.log.history()

    def keyed(self, items: Sequence[LogRecord], text: str) -> dict[str, LogRecord]:
        """Those of the chosen levels that have the filter's text.

        Keys stay theirs while old ones are dropped: the time, and a number within it.
        """
        least, wanted = ORDER.index(LEVELS[self.level][0]), text.casefold()
        seen: dict[str, int] = {}
        found = {}
        for record in items:
            at = record.at.isoformat()
            seen[at] = seen.get(at, 0) + 1
            if _rank(record) >= least and wanted in f"{record.source} {record.text}".casefold():
                found[f"{at} {seen[at]}"] = record
        return found

    def row(self, item: LogRecord, key: str, host: NoctuaryApp) -> Row:
        """A record as a row."""
        tone = TONES.get(item.level, "")
        cells = (short_clock(item.at, host.now()), item.level, item.source, item.text)
        return Row(key, cells, ("muted", tone, "muted", tone))

    def told(self, items: Sequence[LogRecord], shown: int, host: NoctuaryApp) -> tuple[str, str]:  # noqa: ARG002
        """How many records of how many."""
        return f"{count(shown, 'record')} of {len(items):,}", "dim"

    def nothing(self, host: NoctuaryApp) -> str:  # noqa: ARG002
        """Nothing was logged."""
        return f"No {self.levels[self.level]}." if self.level else "Nothing was logged yet."

    def describe(self, item: LogRecord) -> Content:
        """The whole text."""
        return content(item.text)

    def subject(self, item: LogRecord, row: Row) -> str:  # noqa: ARG002
        """The record as one line."""
        return " ".join(row.cells)


class QueriesView(View[Trace]):
    """Searches and asks, through whichever door."""

    title = "searches and asks"
    columns = (
        Column("Time", TIME_WIDTH),
        Column("Door", 7, from_width=100),
        Column("Kind", 6),
        Column("Query"),
        Column("Found", 5, right=True),
        Column("ms", 7, right=True),
        Column("Tokens", 7, right=True, from_width=100),
        Column("Outcome", 10),
    )
    topics = frozenset({"trace"})
    hints = ("log.view", "list.open", "log.level", "list.filter", "list.copy")
    labels: ClassVar[Mapping[str, str]] = {"list.open": "search it", "log.level": "kind"}
    asks = True
    levels = tuple(words for _, words in KINDS)

    async def fetch(self, engine: Engine, text: str) -> Sequence[Trace]:
        """The newest that match."""
        return (await engine.traces.recent(QUERIES, KINDS[self.level][0], text))[::-1]

    def keyed(self, items: Sequence[Trace], text: str) -> dict[str, Trace]:  # noqa: ARG002
        """All: the database has chosen."""
        return {query_key(item): item for item in items}

    def row(self, item: Trace, key: str, host: NoctuaryApp) -> Row:  # noqa: ARG002
        """A query as a row."""
        return query_row(item, host.now())

    def told(self, items: Sequence[Trace], shown: int, host: NoctuaryApp) -> tuple[str, str]:  # noqa: ARG002
        """How many queries, and whether there are older ones."""
        newest = "the newest " if shown >= QUERIES else ""
        off = "" if host.settings.traces else " · NOCTUARY_TRACES is no: none is added"
        return f"{newest}{count(shown, 'query', 'queries')}{off}", "dim"

    def nothing(self, host: NoctuaryApp) -> str:
        """Nothing was asked."""
        if not host.settings.traces:
            return "NOCTUARY_TRACES is no: what is asked is not kept."
        return f"No {self.levels[self.level]} yet." if self.level else "Nothing was asked yet."

    def describe(self, item: Trace) -> Content:
        """Who asked what, and what it took."""
        return query_detail(item)

    def subject(self, item: Trace, row: Row) -> str:  # noqa: ARG002
        """The query."""
        return item.query

    def query(self, item: Trace) -> str:
        """What was asked can be asked again."""
        return item.query


class TokensView(View["LedgerRow"]):
    """The ledger of tokens."""

    title = "tokens"
    columns = (
        Column("Day", 10),
        Column("Purpose", 7),
        Column("Model"),
        Column("Calls", 5, right=True),
        Column("Failed", 6, right=True, from_width=90),
        Column("Read", 10, right=True),
        Column("Written", 10, right=True),
    )
    topics = frozenset({"language_use"})
    hints = ("log.view", "list.filter", "list.copy", "list.mark")
    grows = False

    async def fetch(self, engine: Engine, text: str) -> Sequence[LedgerRow]:  # noqa: ARG002
        """The last days, today's first."""
        return await engine.language.ledger(days=DAYS)

    def keyed(self, items: Sequence[LedgerRow], text: str) -> dict[str, LedgerRow]:
        """Those that have the filter's text."""
        wanted = text.casefold()
        return {
            tokens_key(item): item
            for item in items
            if wanted in f"{item.day:%Y-%m-%d} {item.purpose} {model_name(item)}".casefold()
        }

    def row(self, item: LedgerRow, key: str, host: NoctuaryApp) -> Row:  # noqa: ARG002
        """A day's tokens of one purpose and model as a row."""
        return tokens_row(item)

    def told(self, items: Sequence[LedgerRow], shown: int, host: NoctuaryApp) -> tuple[str, str]:  # noqa: ARG002
        """Today's tokens against the limit."""
        today = host.now().astimezone().date()
        text, reached = today_line(items, today, host.settings.llm_daily_token_limit)
        return (text, "$text-error") if reached else (f"{text} · the last {DAYS} days", "dim")

    def nothing(self, host: NoctuaryApp) -> str:
        """No model was asked."""
        asked = f"No language model was asked in the last {DAYS} days."
        return asked if host.settings.llm_provider else f"{asked}\nNone is set: LLM_PROVIDER names one."

    def describe(self, item: LedgerRow) -> Content:
        """The row in words."""
        return tokens_detail(item)

    def subject(self, item: LedgerRow, row: Row) -> str:  # noqa: ARG002
        """The same as one line."""
        return tokens_detail(item).plain


def views() -> tuple[RecordsView, QueriesView, TokensView]:
    """The views of one pane, in the order of their key."""
    return RecordsView(), QueriesView(), TokensView()


def summary(seen: Seen, shown: int, marked: str, host: NoctuaryApp) -> Content:
    """The line above the rows: what is shown, of how much, and how it is narrowed down."""
    view = seen.view
    text, style = view.told(seen.items, shown, host)
    parts = [
        text,
        view.levels[view.level] if view.levels else "",
        f"with “{view.filter_text}”" if view.filter_text else "",
        marked.removeprefix(" · "),
        ("following" if view.following else "not following") if view.grows else "",
    ]
    return line(" · ".join(part for part in parts if part), style)


def _rank(record: LogRecord) -> int:
    return ORDER.index(record.level) if record.level in ORDER else 1
