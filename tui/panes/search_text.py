"""What the search pane says: its question, the line above the results, and the words where there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.notes.model import NO_EVIDENCE, Mode
from engine.text.amounts import count
from tui.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from engine.notes.model import NotesStatus, SearchResult


RECENT = 6
"""Queries shown where nothing is typed yet."""

SHOWN = 60
"""Characters of a recent query or a filter that are shown."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the text as typed, and what narrows it."""

    text: str = ""
    mode: Mode = Mode.HYBRID
    glob: str = ""
    folder: Path | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is asked."""
        return not self.text.strip()

    @property
    def prefix(self) -> bool:
        """Whether the last word may be unfinished: until a space follows it."""
        return not self.text.endswith(" ")


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question: a result, or why it cannot be answered, or neither when nothing was asked."""

    question: Question
    result: SearchResult | None = None
    problem: str = ""


def narrowed(question: Question) -> str:
    """What narrows the question, as words; empty when nothing does."""
    parts = []
    if question.glob:
        parts.append(f"only {_short(question.glob)}")
    if question.folder is not None:
        parts.append(f"in {_short(str(question.folder))}")
    return " ".join(parts)


def summary(question: Question, result: SearchResult | None, status: NotesStatus | None, marked: int) -> str:
    """The line above the results."""
    parts = []
    if result is not None and not question.empty:
        parts.append(f"{count(len(result.citations), 'citation')} in {result.seconds * 1000:.0f} ms")
    parts.append(str(question.mode))
    parts.append(narrowed(question))
    parts.append(count(marked, "mark") if marked else "")
    if result is None or result.citations:
        parts.append(unfinished(status))  # else it stands under the sentence that says so
        parts.extend(result.notes if result is not None and not question.empty else ())
    return " · ".join(part for part in parts if part)


def unfinished(status: NotesStatus | None) -> str:
    """What the index does not hold yet; empty when it is whole."""
    if status is None:
        return ""
    waiting = status.jobs.pending + status.jobs.processing
    if not waiting:
        return ""
    have = count(status.index.files, "file") if status.index is not None else "no file"
    return f"the index is still being built: {have}, {waiting:,} waiting"


def nothing(
    found: Found, status: NotesStatus | None, recent: Sequence[str], shown_key: Callable[[str], str]
) -> str:
    """The words where there are no results."""
    question = found.question
    if found.problem:
        return found.problem
    if status is not None and status.index is not None and not status.index.folders:
        return f"No folder of notes yet: Esc, then {shown_key('app.add-folder')} adds one."
    if question.empty:
        return _hints(recent, shown_key)
    lines = [NO_EVIDENCE]
    if narrowed(question):
        keys = f"{shown_key('search.path')} and {shown_key('search.folder')}"
        lines.append(f"{_searched(found)}: Esc, then {keys} change that.")
    lines.extend(part for part in (unfinished(status), *(found.result.notes if found.result else ())) if part)
    return "\n".join(lines)


def _searched(found: Found) -> str:
    """Where it was searched, or that there is no such place."""
    question = found.question
    if found.result is None or found.result.path_matches:
        return f"Searched {narrowed(question)}"
    inside = f" in {_short(str(question.folder))}" if question.folder is not None else ""
    return f"No indexed file{inside} matches {_short(question.glob)}"


def _hints(recent: Sequence[str], shown_key: Callable[[str], str]) -> str:
    lines = [
        "Type to search: words, parts of identifiers, questions in plain words.",
        '"in quotes"  words that stand together',
        "↑            queries asked before",
        f"↓ or Enter   to the results; {shown_key('list.filter')} comes back here",
    ]
    if recent:
        lines += ["", "Asked before:", *(f"  {_short(query)}" for query in reversed(recent[-RECENT:]))]
    return "\n".join(lines)


def _short(text: str) -> str:
    return plain(text if len(text) <= SHOWN else text[:SHOWN] + "…")
