"""Passages as data for a language model: each within a fence that nothing in it can close.

The fence carries a random word, made anew for each call, which no note can know. What looks like a fence,
like a turn of a conversation, or like a mark of ours is blunted as well: local models read the words that
begin and end a turn wherever they stand.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.notes import marks
from engine.text.fencing import blunted, shortened, size
from engine.text.safe import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.notes.model import Citation

LONGEST_HEADING = 200
"""Characters of the path of headings that are told: a heading may be a whole page."""


@dataclass(frozen=True, slots=True)
class Fenced:
    """Passages as they are given to a model, the best first: how many, and whether the last was cut."""

    text: str
    given: int
    cut: bool = False


def fence(citations: Sequence[Citation], tokens: int, *, code: str | None = None) -> Fenced:
    """The passages in fences, numbered from 1, as far as about so many tokens reach. The first is always
    there, cut if need be. `code` is the random word.
    """
    code = code or secrets.token_hex(8)
    blocks: list[str] = []
    left, cut = tokens, False
    for number, citation in enumerate(citations, 1):
        before, body = f"<passage {code}>\n{_head(number, citation)}\n\n", _body(citation.text)
        after = f"\n</passage {code}>"
        room = left - size(before + after)
        if size(body) > room:
            if blocks:
                break
            body, cut = shortened(body, room), True
        left = room - size(body)
        blocks.append(f"{before}{body}{after}")
    return Fenced("\n\n".join(blocks), len(blocks), cut)


def _head(number: int, citation: Citation) -> str:
    lines = [f"[{number}] {_line(citation.reference)}"]
    if citation.heading:
        lines.append(f"Below the headings: {_line(' / '.join(citation.heading)[:LONGEST_HEADING])}")
    return "\n".join(lines)


def _line(text: str) -> str:
    return _unmarked(blunted(visible(text, keep_newlines=False, keep_tabs=False)))


def _body(text: str) -> str:
    return _unmarked(blunted(text.replace("\r\n", "\n")))


def _unmarked(text: str) -> str:
    """Marks that stand in the text itself, as ⟦1⟧: copied into an answer they would point to what is ours."""
    parts, at = [], 0
    for start, end, _ in marks.places(text):
        parts += [text[at:start], f"\u27e6{text[start + 1 : end - 1]}\u27e7"]
        at = end
    return "".join([*parts, text[at:]])
