"""How queries and tokens are told in the Log pane: a row, and everything about one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from engine.notes.traced import TraceKind
from engine.text.amounts import count
from tui.ages import clock
from tui.text import content, line
from tui.widgets.row_list import Row

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date, datetime

    from engine.language import LedgerRow
    from engine.notes.traced import Trace

TIME_WIDTH = 8
"""Cells of a time of day; of another day the day of the month stands before hours and minutes."""


def short_clock(at: datetime | None, now: datetime) -> str:
    """A moment in `TIME_WIDTH` cells."""
    return "" if at is None else clock(at, now)[-TIME_WIDTH:]


def views_line(titles: Iterable[str], shown: str) -> Content:
    """The views by name, the one that is shown in brackets."""
    parts = [(f"[{each}]", "bold") if each == shown else (f" {each} ", "") for each in titles]
    return Content(" ").join([Content.assemble(part) for part in parts])


# Searches and asks -----------------------------------------------------------------------------


def outcome(trace: Trace) -> tuple[str, str]:
    """What came of a query: sign and word, and their tone."""
    if trace.trouble:
        return "✗ failed", "error"
    if not trace.citations:
        return "○ nothing", "muted"
    if trace.kind is TraceKind.SEARCH:
        return "✓ found", "good"
    return ("✓ answered", "good") if trace.answered else ("○ cited", "muted")


def query_key(trace: Trace) -> str:
    """The key of its row."""
    return f"query {trace.id}"


def query_row(trace: Trace, now: datetime) -> Row:
    """A search or ask as a row of the table."""
    word, tone = outcome(trace)
    cells = (
        short_clock(trace.at, now),
        trace.program,
        str(trace.kind),
        trace.query,
        f"{trace.citations:,}",
        f"{trace.seconds * 1000:,.0f}",
        f"{_spent(trace):,}" if trace.kind is TraceKind.ASK else "",
        word,
    )
    return Row(query_key(trace), cells, ("muted", "muted", "", "", "", "muted", "muted", tone))


def query_detail(trace: Trace) -> Content:
    """What a row has no room for, and below it the whole query."""
    facts = [
        f"{trace.at.astimezone():%Y-%m-%d %H:%M:%S}" if trace.at is not None else "",
        trace.program,
        count(trace.citations, "citation"),
        f"{trace.provider}/{trace.model}" if trace.model else "",
        trace.prompt_version or "",
        f"read {trace.prompt_tokens or 0:,}, wrote {trace.completion_tokens or 0:,}" if trace.model else "",
    ]
    told = line(" · ".join(fact for fact in facts if fact), "dim")
    if trace.trouble:
        told = Content.assemble(line(f"✗ {trace.trouble}", "$text-error"), (" · ", "dim"), told)
    return Content("\n").join([told, line(trace.query)])


def _spent(trace: Trace) -> int:
    return (trace.prompt_tokens or 0) + (trace.completion_tokens or 0)


# Tokens ----------------------------------------------------------------------------------------


def model_name(row: LedgerRow) -> str:
    """The model with its provider."""
    return f"{row.provider}/{row.model}"


def tokens_key(row: LedgerRow) -> str:
    """The key of its row."""
    return f"tokens {row.day:%Y-%m-%d} {row.purpose} {model_name(row)}"


def tokens_row(row: LedgerRow) -> Row:
    """What one purpose took of one model on one day, as a row of the table."""
    cells = (
        f"{row.day:%Y-%m-%d}",
        row.purpose,
        model_name(row),
        f"{row.calls:,}",
        f"✗ {row.failed:,}" if row.failed else "",
        f"{row.prompt_tokens:,}",
        f"{row.completion_tokens:,}",
    )
    return Row(tokens_key(row), cells, ("muted", "", "", "", "error", "", ""))


def tokens_detail(row: LedgerRow) -> Content:
    """The same in words, on a line that can be copied."""
    about = "about " if row.estimated else ""
    failed = f" ({row.failed:,} failed)" if row.failed else ""
    told = (
        f"{row.day:%Y-%m-%d} · {row.purpose} · {model_name(row)} · {count(row.calls, 'call')}{failed} · "
        f"{about}{count(row.tokens, 'token')}: {row.prompt_tokens:,} read, {row.completion_tokens:,} written"
    )
    return content(told, "dim")


def today_line(rows: Iterable[LedgerRow], today: date, limit: int) -> tuple[str, bool]:
    """What today's tokens are, and whether the day's limit is reached."""
    spent = sum(row.tokens for row in rows if row.day == today)
    if not limit:
        return f"Today {count(spent, 'token')}, no limit", False
    share = f"Today {spent:,} of {count(limit, 'token')}"
    return (f"{share}: no model is asked before midnight", True) if spent >= limit else (share, False)
