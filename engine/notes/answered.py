"""The nouns of asking: an answer with its sources, and what is told while it is written.

Nothing here touches the database or the disk, so screens and commands can import it for free.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.notes.model import Citation, SearchResult


class Outcome(StrEnum):
    """The three ways an ask ends."""

    NO_EVIDENCE = "no_evidence"
    """Nothing was found; no model was called."""
    CITATIONS = "citations"
    """Passages were found and no model wrote an answer."""
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Mark:
    """A `[1]` in an answer: its place in the text, and the citation it points to; None: to nothing."""

    start: int
    end: int
    number: int
    reference: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an ask came to. `marks` are those in `text`; `unsupported` are sentences for people on what in the
    answer points to no source: a mark without a citation, or no mark at all. `trouble` says why there is no
    answer although a model was asked, `notes` what limits the search. Tokens are the model's own.
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
    notes: tuple[str, ...] = ()
    prompt_version: str | None = None
    provider: str | None = None
    model: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    truncated: bool = False
    """The answer ends where its token limit was reached."""


@dataclass(frozen=True, slots=True)
class Found:
    """The first step of an ask: the passages that were found."""

    result: SearchResult


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the answer as it is written."""

    text: str


AskStep = Found | Piece | Answer
"""What a streamed ask tells, in order: once what was found, then pieces, at last the whole answer."""
