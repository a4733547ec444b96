"""The lines around a cited span, numbered, as rows of a known width; pure functions.

Only a bounded part is laid out, whatever the file holds, and what was left out is said in the row
that stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from engine.text.amounts import count
from tui.widgets.citation_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.notes.model import Citation, Preview

MOST_LINES = 200
"""Lines laid out: several screens, and far more than a passage has."""

MOST_CHARACTERS = 2_000
"""Characters of a cited line laid out: a paragraph written as one line fits, a line of data is cut."""

MOST_AROUND = 300
"""Characters of a line around the cited ones: enough to know what it is about."""

MOST_IN_ALL = 12_000
"""Characters laid out in all: about 15 ms of work on a slow machine, and more than a screen holds."""

FEW = 60
"""Characters that are shown rather than counted: to say that they were left out takes as much room."""

BEFORE = 80
"""Characters shown before a cited part of an over-long line."""

CITED, AROUND = "┃", "│"
"""What stands between number and text: a heavy bar at cited lines, so that no colour is needed."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Laid out rows; `first` is the index of the first cited one."""

    rows: tuple[Content, ...] = ()
    first: int = 0


def rows(preview: Preview, citation: Citation, width: int) -> Rows:
    """Lay out a preview in rows of at most `width` cells."""
    digits = len(str(preview.first_line + len(preview.lines)))
    marks = _marks(preview, citation)
    start, end = preview.span
    laid: list[Content] = []
    first: int | None = None
    used = 0
    for index, text in enumerate(preview.lines):
        if index >= MOST_LINES or used > MOST_IN_ALL:
            more = count(len(preview.lines) - index, "more line")
            laid.append(Content.styled(f"… {more}: the file has the rest", "$text-muted"))
            break
        number = preview.first_line + index
        cited = start <= number <= end
        if cited and first is None:
            first = len(laid)
        part = _cited(text, marks.get(number, ()), citation.text) if cited else _around(text)
        used += len(part.plain)
        laid.extend(_numbered(part, number, digits, max(width - digits - 3, 1), cited=cited))
    return Rows(tuple(laid), first or 0)


def _numbered(part: Content, number: int, digits: int, room: int, *, cited: bool) -> Iterator[Content]:
    """A line as rows, the number at the first."""
    bar = (f"{CITED} ", "$text-accent") if cited else (f"{AROUND} ", "$text-muted")
    for index, line in enumerate(part.wrap(room) or [Content()]):
        label = str(number) if index == 0 else ""
        yield Content.assemble((f"{label.rjust(digits)} ", "$text-muted"), bar, line)


def _around(text: str) -> Content:
    """A line of context."""
    end = _end(text, MOST_AROUND)
    more = f" … {len(text) - end:,} characters more" if end < len(text) else ""
    return (shown(text[:end], ()) + Content(more)).stylize("$text-muted")


def _end(text: str, end: int) -> int:
    """Where to cut a text that is to be cut at `end`: nowhere, when next to nothing is left."""
    return end if len(text) - end > FEW else len(text)


def _cited(text: str, marks: tuple[tuple[int, int], ...], cited: str) -> Content:
    """A cited line, cut to what is bearable around the part that is cited."""
    if _end(text, MOST_CHARACTERS) == len(text):
        return shown(text, marks)
    at = max(text.find(cited[:MOST_CHARACTERS].partition("\n")[0]), 0)
    start = at - BEFORE if at - BEFORE > FEW else 0
    end = _end(text, min(start + MOST_CHARACTERS, len(text)))
    part = shown(text[start:end], [(a - start, b - start) for a, b in marks])
    before = f"… {start:,} characters before … " if start else ""
    after = f" … {len(text) - end:,} characters more" if end < len(text) else ""
    return Content.assemble((before, "italic"), part, (after, "italic"))


def _marks(preview: Preview, citation: Citation) -> dict[int, tuple[tuple[int, int], ...]]:
    """Line number to the spans of matched words in it, where the cited text stands as indexed."""
    start, end = preview.span
    first = max(start - preview.first_line, 0)
    lines = preview.lines[first : end - preview.first_line + 1]
    joined = "\n".join(lines)
    base = joined.find(citation.text)
    if base < 0 or not citation.text:
        return {}
    marks: dict[int, list[tuple[int, int]]] = {}
    matches = [(a + base, b + base) for a, b in citation.matches]
    at = 0
    for index, text in enumerate(lines):
        inside = [(a - at, b - at) for a, b in matches if a < at + len(text) and b > at]
        if inside:
            marks[preview.first_line + first + index] = inside
        at += len(text) + 1
    return {number: tuple((max(a, 0), b) for a, b in spans) for number, spans in marks.items()}
