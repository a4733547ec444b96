"""What an answer looks like, as pure functions: hostile text in, safe lines of a known width out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from textual.content import Content, Span

from engine.notes.answered import Outcome
from engine.text.amounts import count, duration
from tui.text import content, cut, legible, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.notes.answered import Answer, Mark
    from engine.notes.model import Citation

MARK = "bold underline $text-accent"
"""Bold and underlined as well, for terminals without colour."""

LOST = "bold $text-warning"
"""A mark that points to nothing; a sign after it says so too."""

LOST_SIGN = "✗"

MOST_CHARACTERS = 20_000
"""Of an answer that are laid out: several times what a model is allowed to write."""

TAB = "    "


class Stage(StrEnum):
    """How far an answer is."""

    SEARCHING = "searching"
    WRITING = "writing"
    CANCELLED = "cancelled"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Shown:
    """An answer as far as it is known: what was written, the marks in it, the passages it is written from.

    `seconds` are those since it was asked; `answer` is there once it is whole.
    """

    stage: Stage
    text: str = ""
    marks: tuple[Mark, ...] = ()
    citations: tuple[Citation, ...] = ()
    seconds: float = 0.0
    answer: Answer | None = None

    @property
    def running(self) -> bool:
        """Whether more is to come."""
        return self.stage in {Stage.SEARCHING, Stage.WRITING}


def title(shown: Shown, cancel: str, width: int) -> Content:
    """The line above an answer, in at most `width` cells; `cancel` is the key that cancels it."""
    answer = shown.answer
    if shown.running:
        text = f"… {shown.stage} {duration(shown.seconds)} · {cancel} cancels"
    elif answer is None:
        text = f"■ cancelled after {duration(shown.seconds)}"
    elif answer.outcome is Outcome.ANSWER:
        sign = "✓" if not answer.unsupported and not answer.declined else "!"
        parts = [
            f"{sign} answered in {answer.seconds:.1f} s",
            _tokens(answer),
            f"{answer.provider}/{answer.model}",
        ]
        text = " · ".join(part for part in parts if part)
    else:
        text = "✗ no answer" if answer.trouble else "no answer"
    return Content(cut(plain(text), width))


def _tokens(answer: Answer) -> str:
    read, written = answer.prompt_tokens, answer.completion_tokens
    return f"{read:,} + {count(written, 'token')}" if read or written else ""


def rows(shown: Shown, width: int) -> list[Content]:
    """The answer, and below it what is to be said of it, in rows of at most `width` cells."""
    laid = _wrapped(marked(shown.text[:MOST_CHARACTERS], shown.marks), width) if shown.text else []
    remarks = [row for remark in _remarks(shown) for row in _wrapped(remark, width)]
    return [*laid, *([Content()] if laid and remarks else []), *remarks]


def marked(text: str, marks: Sequence[Mark]) -> Content:
    """The text made visible, its marks set off; one that points to nothing has a sign after it."""
    places: dict[tuple[int, int], bool] = {}
    for mark in marks:
        place = (mark.start, mark.end)
        places[place] = places.get(place, True) and mark.reference is not None
    parts: list[str] = []
    spans: list[Span] = []
    at = length = 0
    for (start, end), supported in sorted(places.items()):
        if start < at or end > len(text):
            continue
        before, inner = _safe(text[at:start]), _safe(text[start:end]) + ("" if supported else LOST_SIGN)
        length += len(before)
        spans.append(Span(length, length + len(inner), MARK if supported else LOST))
        length += len(inner)
        parts += [before, inner]
        at = end
    return Content("".join([*parts, _safe(text[at:])]), spans)


def copied(shown: Shown, references: Sequence[str]) -> str:
    """The answer with its sources, as it is copied: nothing in it steers what it is pasted into."""
    sources = "\n".join(f"[{number}] {plain(each)}" for number, each in enumerate(references, 1))
    return f"{_safe(shown.text)}\n\nSources:\n{sources}\n" if shown.text else f"Sources:\n{sources}\n"


def _safe(text: str) -> str:
    return legible(text).replace("\t", TAB)


def _wrapped(text: Content, width: int) -> list[Content]:
    lines = text.split("\n", allow_blank=True)
    return [row for line in lines for row in (line.wrap(max(width, 1)) or [Content()])]


def _remarks(shown: Shown) -> list[Content]:
    """What is to be said of an answer, each as one sentence."""
    answer = shown.answer
    if answer is None:
        return _of_unfinished(shown)
    said = [content(f"! Unsupported: {each}", "$text-warning") for each in answer.unsupported]
    if answer.declined:
        said.append(content("The model says that these passages do not answer."))
    if answer.trouble:
        said.append(content(f"✗ {answer.trouble} {answer.remedy}".strip(), "$text-error"))
    if answer.unasked:
        said.append(content(f"There is no answer: {answer.unasked}"))
    if answer.outcome is not Outcome.NO_EVIDENCE:
        said += [content(note, "$text-muted") for note in answer.notes]
    return said


def _of_unfinished(shown: Shown) -> list[Content]:
    if shown.stage is Stage.CANCELLED:
        return [] if shown.text else [content("Cancelled before anything was written.", "$text-muted")]
    if shown.text or not shown.citations:
        return []
    reads = count(len(shown.citations), "passage")
    return [content(f"The model reads {reads}.", "$text-muted")]
