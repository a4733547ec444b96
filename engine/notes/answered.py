"""The nouns of asking: an answer with its sources, and what is told while it is written.

Nothing here touches the database or the disk, so screens and commands can import it for free.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from pathlib import Path

    from engine.notes.model import Citation, Mode, SearchResult


class SearchOptions(TypedDict, total=False):
    """The options of the search within an ask: those of `Notes.search`."""

    k: int | None
    path_glob: str | None
    folder: Path | None
    heading: str | None
    mode: Mode
    max_distance: float | None


class Outcome(StrEnum):
    """The three ways an ask ends."""

    NO_EVIDENCE = "no_evidence"
    """Nothing was found; no model was called."""
    CITATIONS = "citations"
    """Passages were found and no model wrote an answer."""
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Mark:
    """A `[1]` in an answer: its place in the text, and the citation it points to; None: to nothing.

    `[1, 2]` is two marks in one place.
    """

    start: int
    end: int
    number: int
    reference: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an ask came to. `marks` are those in `text`; `unsupported` are sentences for people on what in the
    answer points to no source: a mark without a citation, or no mark at all. `trouble` says why there is no
    answer although a model was asked, `unasked` why none was; `notes` what limits the search or the answer.
    Tokens are the model's own.
    """

    question: str
    outcome: Outcome
    citations: tuple[Citation, ...]
    seconds: float
    text: str | None = None
    marks: tuple[Mark, ...] = ()
    unsupported: tuple[str, ...] = ()
    trouble: str = ""
    remedy: str = ""
    unasked: str = ""
    notes: tuple[str, ...] = ()
    prompt_version: str | None = None
    provider: str | None = None
    model: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    truncated: bool = False
    """The answer ends where its token limit was reached."""
    declined: bool = False
    """The model says, in the words the prompt has for it, that the passages do not answer. That claims
    nothing, so there is nothing to support."""
    path_matches: bool = True
    """As in `SearchResult`."""


@dataclass(frozen=True, slots=True)
class Found:
    """The first step of an ask: the passages that were found."""

    result: SearchResult


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer as it is written; all of them together are its text. `marks` are those in what is
    written so far.
    """

    text: str
    marks: tuple[Mark, ...] = ()


AskStep = Found | Piece | Answer
"""What a streamed ask tells, in order: once what was found, then pieces, at last the whole answer."""
