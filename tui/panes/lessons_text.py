"""How lessons, tombstones and waiting clusters are told: rows, counts, and everything about one."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from textual.content import Content

from engine.memory.model import Kind, LessonState
from engine.text.amounts import count
from tui.ages import age, ago
from tui.panes.log_text import views_line
from tui.text import content, line
from tui.widgets.row_list import Column, Row
from tui.widgets.turn_rows import Indented

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.memory.model import AuditRow, Cluster, Lesson, LessonCounts, LessonDetail, SourceTurn

SOON_DAYS = 7
"""Days left from which a lesson is shown as one that expires soon; the Inbox counts the same."""

MOST_TURNS = 30
"""Turns of one lesson that are shown: the newest. Hundreds say no more."""

MOST_OF_A_TEXT = 1_500
"""Characters shown of what was said in one turn, and of what was answered."""

LONGEST_LINES = 30
"""Lines shown of one text."""


class View(StrEnum):
    """What the pane lists."""

    LESSONS = "lessons"
    WAITING = "waiting"
    TOMBSTONES = "tombstones"


_BRAIN = Column("Brain", 16, from_width=100)

COLUMNS: dict[View, tuple[Column, ...]] = {
    View.LESSONS: (
        Column("", 2),
        Column("Id", 5, right=True),
        Column("Age", 4, right=True),
        Column("Used", 4, right=True, from_width=100),
        Column("Uses", 4, right=True),
        Column("Left", 7, right=True),
        Column("Turns", 5, right=True, from_width=100),
        _BRAIN,
        Column("Rule"),
    ),
    View.WAITING: (
        Column("Id", 5, right=True),
        Column("Age", 4, right=True),
        Column("Turns", 5, right=True),
        Column("Corrections", 11, right=True),
        Column("Tried", 5, right=True),
        _BRAIN,
        Column("Why it waits"),
    ),
    View.TOMBSTONES: (
        Column("Id", 5, right=True),
        Column("Ago", 4, right=True),
        Column("By", 12),
        Column("Reason", share=1),
        _BRAIN,
        Column("Rule", share=2),
    ),
}
"""Of brains there is a column only where there are several."""

DOOMED, NEW = "D", "+"


def brain_name(found: Lesson | Cluster) -> str:
    """Core and end user."""
    return f"{found.core}/{found.user}" if found.user else found.core


def left(lesson: Lesson, now: datetime) -> tuple[str, str]:
    """How long a lesson still lives, in at most seven cells, and the tone of that."""
    days = lesson.days_left(now)
    if days is None:
        return "pinned", "good"
    if lesson.state is LessonState.EXPIRED or days <= 0:
        return "expired", "error"
    if days < 1:
        return f"{max(int(days * 24), 1)}h", "warning"
    return f"{int(days)}d", "warning" if days < SOON_DAYS else ""


def lesson_row(lesson: Lesson, now: datetime, *, doomed: bool, brains: bool) -> Row:
    """A lesson as a row of the table."""
    time_left, tone = left(lesson, now)
    if lesson.state is LessonState.DELETED:
        time_left, tone = "deleted", "error"
    cells = (
        (DOOMED if doomed else " ") + (NEW if lesson.new else " "),
        lesson.reference,
        age(lesson.created_at, now),
        age(lesson.last_used_at, now) or "-",
        f"{lesson.uses:,}",
        time_left,
        f"{lesson.sources:,}",
        *((brain_name(lesson),) if brains else ()),
        lesson.text,
    )
    tones = ("error" if doomed else "good", "muted", "muted", "muted", "muted", tone, "muted")
    return Row(lesson.reference, cells, (*tones, *(("muted",) if brains else ()), "muted" if doomed else ""))


def tombstone_row(lesson: Lesson, now: datetime, *, brains: bool) -> Row:
    """A deleted lesson as a row of the table."""
    cells = (
        lesson.reference,
        age(lesson.deleted_at, now),
        lesson.deleted_by,
        lesson.reason or "-",
        *((brain_name(lesson),) if brains else ()),
        lesson.text,
    )
    tones = ("muted", "muted", "muted", "", *(("muted",) if brains else ()), "muted")
    return Row(lesson.reference, cells, tones)


def cluster_row(cluster: Cluster, now: datetime, *, brains: bool) -> Row:
    """A waiting cluster as a row of the table."""
    cells = (
        cluster_reference(cluster),
        age(cluster.created_at, now),
        f"{cluster.packets:,}",
        f"{cluster.corrections:,}" if cluster.corrections else "-",
        f"{cluster.attempts:,}" if cluster.attempts else "-",
        *((brain_name(cluster),) if brains else ()),
        f"✗ {cluster.error}" if cluster.error else "for a distiller",
    )
    tones = ("muted", "muted", "", "", "muted", *(("muted",) if brains else ()))
    return Row(cells[0], cells, (*tones, "error" if cluster.error else "muted"))


def cluster_reference(cluster: Cluster) -> str:
    """What names a cluster for people: C7."""
    return f"C{cluster.id}"


def columns(view: View, *, brains: bool) -> tuple[Column, ...]:
    """The columns of a view."""
    return tuple(each for each in COLUMNS[view] if brains or each is not _BRAIN)


def totals_line(counts: LessonCounts | None, view: View) -> Content:
    """The views with their counts, the one that is shown in brackets; what is new, and what expires soon."""
    if counts is None:
        return views_line([*View], view)
    numbers = {
        View.LESSONS: counts.living,
        View.WAITING: counts.waiting,
        View.TOMBSTONES: counts.tombstones,
    }
    titles = {each: f"{each} {numbers[each]:,}" for each in View}
    told = [views_line(titles.values(), titles[view])]
    if counts.new:
        told.append(Content.styled(f"{NEW} {counts.new:,} new", "$text-success"))
    if counts.expiring:
        expire = "expires" if counts.expiring == 1 else "expire"
        told.append(content(f"{counts.expiring:,} {expire} this week", "$text-warning"))
    return Content(" · ").join(told)


# Everything about one ---------------------------------------------------------------------------


def facts(lesson: Lesson, now: datetime) -> str:
    """What is known of a lesson but for its words, in a line."""
    time_left, _ = left(lesson, now)
    used = f"used {count(lesson.uses, 'time')}, last {ago(lesson.last_used_at, now)}"
    parts = [
        lesson.reference,
        brain_name(lesson),
        f"deleted {ago(lesson.deleted_at, now)} by {lesson.deleted_by}" if lesson.deleted_at else "",
        (f"{time_left} left" if time_left[-1] in "dh" and time_left[0].isdigit() else time_left)
        if not lesson.deleted_at
        else "",
        used if lesson.uses else "never used",
        f"learned {count(lesson.reinforced, 'time')}" if lesson.reinforced > 1 else "",
        f"from {count(lesson.sources, 'turn')}",
        "new" if lesson.new else "",
    ]
    return " · ".join(part for part in parts if part)


def lesson_lines(detail: LessonDetail, now: datetime) -> list[Indented]:
    """Everything about a lesson: its words, the turns it came from, and what was done to it."""
    lesson = detail.lesson
    lines = [
        Indented(0, line(lesson.text, "bold")),
        Indented(0, line(facts(lesson, now), "dim")),
    ]
    if lesson.deleted_at is not None and lesson.reason:
        lines.append(Indented(0, line(f"Deleted because: {lesson.reason}", "$text-error")))
    lines += [Indented(0, Content()), Indented(0, _heading(f"From {count(len(detail.sources), 'turn')}"))]
    lines += turn_lines(detail.sources, now)
    lines += [Indented(0, Content()), Indented(0, _heading("History"))]
    lines += [Indented(2, history_line(each, now)) for each in detail.history]
    return lines


def turn_lines(turns: Sequence[SourceTurn], now: datetime) -> list[Indented]:
    """Turns, oldest first: who said what, when and where, and whether any of it was recalled text."""
    hidden = max(len(turns) - MOST_TURNS, 0)
    lines = [Indented(2, content(f"… {count(hidden, 'older turn')} not shown", "dim"))] if hidden else []
    for turn in turns[hidden:]:
        lines.append(Indented(0, _who(turn, now)))
        lines += _said(turn.input, turn.input_recalled)
        if turn.response:
            lines.append(Indented(2, line("answer:", "dim")))
            lines += _said(turn.response, turn.response_recalled)
    return lines


def _who(turn: SourceTurn, now: datetime) -> Content:
    """The line above a turn."""
    parts = [
        f"{turn.at.astimezone():%Y-%m-%d %H:%M} ({ago(turn.at, now)})",
        turn.speaker or "user",
        f"#{turn.channel}" if turn.channel else "",
        turn.origin,
    ]
    told = line("▪ " + " · ".join(part for part in parts if part), "dim")
    if turn.kind is Kind.CORRECTION:
        return Content.assemble(told, "  ", ("! correction", "$text-warning"))
    if turn.kind is Kind.OVERWRITE:
        return Content.assemble(told, "  ", ("? unconfirmed overwrite", "$text-warning"))
    return told


def _said(text: str, recalled: bool) -> list[Indented]:
    """What was said, as it was; of a long text its beginning."""
    lines = [Indented(2, content("↺ recalled text: never learned from", "$text-warning"))] if recalled else []
    shown = text[:MOST_OF_A_TEXT].splitlines()
    lines += [Indented(4, line(each)) for each in shown[:LONGEST_LINES]]
    if len(text) > MOST_OF_A_TEXT or len(shown) > LONGEST_LINES:
        lines.append(Indented(4, content(f"… ({count(len(text), 'character')} in all)", "dim")))
    return lines


_DONE = {
    "create": "learned",
    "strengthen": "learned again",
    "edit": "edited",
    "pin": "pinned",
    "unpin": "let go",
    "delete": "deleted",
    "lift": "brought back",
}


def history_line(row: AuditRow, now: datetime) -> Content:
    """What was done, by whom and when."""
    told = f"{ago(row.at, now)} · {_DONE.get(row.action, row.action)} by {row.actor}"
    before = (row.before or {}).get("text")
    if row.action == "edit" and isinstance(before, str):
        told += f" · it said: {before}"
    return line(f"{told} · {row.reason}" if row.reason else told)


def _heading(text: str) -> Content:
    return Content.styled(text, "bold underline")
