"""Drift: where index and disk differ, by cause, and the key that repairs it.

Comparing walks every folder, so it is done on request, after repairs, and once the queue has come to
rest; while it is busy the pane says that its figures are of an earlier moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.content import Content

from engine.notes.model import DriftCause, DriftReport, DriftRow
from engine.text.amounts import count
from tui.ages import age, clock
from tui.keymap import bindings
from tui.panes.jobs_text import short_error
from tui.panes.list_pane import ListPane
from tui.screens.dialog import Confirm
from tui.text import all_of, content, line
from tui.widgets.label import Label
from tui.widgets.row_list import Column, Row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine import Engine

CAUSES: tuple[DriftCause | None, ...] = (None, *DriftCause)
NAMES = {
    DriftCause.NOT_INDEXED: ("+ not indexed", "warning"),
    DriftCause.ORPHANED: ("- orphaned", "warning"),
    DriftCause.CHANGED: ("~ changed", "warning"),
    DriftCause.OTHER_MODEL: ("≠ other model", "muted"),
    DriftCause.JOB_FAILED: ("✗ failed", "error"),
}
"""How a cause is shown: sign, words and tone."""


class DriftPane(ListPane[DriftReport]):
    """Index against disk."""

    number = 4
    title = "Drift"
    scope = "drift"
    topics = frozenset({"folder", "file", "job"})
    reading = "Comparing disk and index…"
    hints = ("drift.repair", "drift.cause", "list.refresh", "list.filter", "list.mark")
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("drift")]
    columns = (
        Column("Cause", 13),
        Column("Path", path=True, share=3),
        Column("What differs", share=3, from_width=70),
        Column("Age", 4, right=True, from_width=100),
    )

    def __init__(self) -> None:
        super().__init__()
        self._totals = Label(classes="totals")
        self._problems = Label(classes="problems", grows=True)
        self.cause: DriftCause | None = None
        self._known: dict[str, DriftRow] = {}

    def above(self) -> ComposeResult:
        """Folders in trouble first, then the totals."""
        yield self._problems
        yield self._totals

    def arrive(self, kind: str) -> None:
        """The inbox sends to a cause."""
        self.cause = DriftCause(kind) if kind in set(DriftCause) else None
        self.redraw()

    async def fetch(self, engine: Engine) -> DriftReport:
        """Compare disk and index."""
        return await engine.notes.drift()

    def changed(self) -> None:
        """Not at once: every job done would ask for a walk of the disk. `status_read` does it in time."""
        self.dirty = True

    def status_read(self) -> None:
        """Compare again once the queue has come to rest."""
        status = self.host.status
        resting = status is not None and not status.jobs.pending and not status.jobs.processing
        if self.dirty and self.active and resting:
            self.request()

    # Showing ---------------------------------------------------------------------------------

    def show(self, snapshot: DriftReport) -> None:
        """Problems, totals and rows; a mark whose row is gone is gone with it."""
        self._known = {row.key: row for row in snapshot.rows}
        self.marks.forget(set(self.marks) - self._known.keys())
        problems = [content(f"! {each.folder}: {each.reason}", "$text-error") for each in snapshot.problems]
        self._problems.put(Content("\n").join(problems))
        self._problems.display = bool(problems)
        self._totals.put(totals_line(snapshot, self.cause, self._totals.size.width))
        super().show(snapshot)

    def rows(self, snapshot: DriftReport) -> Sequence[Row]:
        """The rows of the chosen cause that have the filter's text."""
        now = self.host.now()
        many = len({row.folder for row in snapshot.rows}) > 1
        return [
            Row(
                row.key,
                (
                    NAMES[row.cause][0],
                    _path(row, many=many),
                    short_error(row.detail, row.folder / row.path),
                    age(row.since, now) or "-",
                ),
                (NAMES[row.cause][1], "", "muted", "muted"),
            )
            for row in self._matching(snapshot)
        ]

    def _matching(self, report: DriftReport) -> list[DriftRow]:
        text = self.filter_text.casefold()
        return [
            row
            for row in report.rows
            if self.cause in (None, row.cause) and (not text or text in f"{row.path} {row.detail}".casefold())
        ]

    def summary(self, snapshot: DriftReport) -> Content:
        """When it was compared, and what with."""
        when = clock(snapshot.at, self.host.now())
        text = f" · with “{self.filter_text}”" if self.filter_text else ""
        stale = " · jobs ran since" if self.dirty else ""
        rows = count(len(self.list.rows), "row")
        files = f"{snapshot.files_on_disk:,} on disk, {snapshot.files_in_index:,} in the index"
        return line(f"{rows}{text}{self.marked()} · {files} · compared {when}{stale}", "dim")

    def nothing(self) -> str:
        """No drift."""
        if self.cause is not None:
            return f"Nothing is {NAMES[self.cause][0][2:]}."
        return "The index is true to the disk."

    def filter_changed(self) -> None:
        """The report is here already: only draw it."""
        self.redraw()

    def on_resize(self) -> None:
        """The totals are as long as there is room."""
        if self.snapshot is not None:
            self._totals.put(totals_line(self.snapshot, self.cause, self._totals.size.width))

    # Rows ------------------------------------------------------------------------------------

    def _row(self, row: Row) -> DriftRow | None:
        return self._known.get(row.key)

    def describe(self, row: Row) -> Content | None:
        """The whole path and what differs."""
        found = self._row(row)
        return None if found is None else content(f"{found.folder.name}/{found.path}\n{found.detail}", "dim")

    def subject(self, row: Row) -> str:
        """The file's path."""
        file = self.file(row)
        return str(file) if file is not None else row.cells[1]

    def file(self, row: Row) -> Path | None:
        """The file that differs."""
        found = self._row(row)
        return None if found is None else found.folder / found.path

    def unavailable(self, action: str) -> str:
        """Why a key does nothing now."""
        if action == "drift.repair" and self.list.current is None:
            return "Nothing to repair here"
        row = self.list.current
        found = self._row(row) if action == "list.open" and row is not None else None
        if found is not None and found.cause is DriftCause.ORPHANED:
            return "The file is gone from the disk: there is nothing to open"
        return super().unavailable(action)

    def do_cause(self) -> None:
        """Show the rows of the next cause."""
        self.cause = CAUSES[(CAUSES.index(self.cause) + 1) % len(CAUSES)]
        self.redraw()

    # Repair ----------------------------------------------------------------------------------

    def do_repair(self) -> None:
        """Repair the marked rows; without marks all that are shown, after a yes."""
        if len(self.marks):
            self._repair(tuple(self.marks))
            return
        rows = len(self.list.rows)
        self.app.push_screen(
            Confirm(
                f"Repair {all_of(rows, 'row')} shown?",
                "drift.repair",
                detail="Mark rows to repair only those.",
            ),
            self._repair_all,
        )

    def _repair_all(self, confirmed: bool | None) -> None:
        if confirmed:
            self._repair(tuple(row.key for row in self.list.rows))

    def _repair(self, keys: Sequence[str]) -> None:
        def said(queued: int) -> str:
            self.marks.forget(keys)
            self.dirty = True
            self.redraw()
            if not queued:
                return "No job can mend this: the line below the list says why"
            return f"{count(queued, 'job')} queued; what is repaired leaves the list"

        self.command(lambda engine: engine.notes.repair(keys), "repair", said)


def totals_line(report: DriftReport, chosen: DriftCause | None, room: int) -> Content:
    """Rows by cause on one line, the cause that is shown in brackets.

    Where there is no room, causes that have no row go first, and then the words of the others.
    """
    counts = report.counts()
    told = [each for each in CAUSES if each is None or each is chosen or counts[each]]
    for causes, words, pad in ((CAUSES, True, " "), (CAUSES, True, ""), (told, True, ""), (told, False, "")):
        parts: list[tuple[str, str]] = []
        for each in causes:
            name = "all" if each is None else NAMES[each][0]
            number = len(report.rows) if each is None else counts[each]
            text = f"{name if words or each in (None, chosen) else name[0]} {number:,}"
            parts.append((f"[{text}]", "bold") if each is chosen else (f"{pad}{text}{pad}", ""))
        line_ = Content("" if pad else " ").join([Content.assemble(part) for part in parts])
        if line_.cell_length <= room:
            break
    return line_


def _path(row: DriftRow, *, many: bool) -> str:
    return f"{row.folder.name}/{row.path}" if many else row.path
