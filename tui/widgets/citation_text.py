"""What a citation looks like, as pure functions: hostile text in, safe lines of a known width out.

Offsets of matched words refer to the text as it was indexed. A character may become several when it is
made visible, so spans are mapped by making each stretch between their ends visible on its own.
Everything is cut before it is laid out: a line of 300 KB costs as much as the part that is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content, Span

from engine.notes.model import Freshness, FreshnessState
from engine.text.amounts import count
from tui.text import cut, cut_path, legible, plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.notes.model import Citation, Explanation

MATCH = "bold underline $text-accent"
"""Bold and underlined as well, for terminals without colour."""

SIGNS = {
    FreshnessState.SAME: "=",
    FreshnessState.MOVED: "→",
    FreshnessState.CHANGED: "≠",
    FreshnessState.GONE: "✗",
}
STYLES = {
    FreshnessState.SAME: "$text-success",
    FreshnessState.MOVED: "$text-warning",
    FreshnessState.CHANGED: "$text-warning",
    FreshnessState.GONE: "$text-error",
}
LINE_END = " ↵ "
"""Stands for the end of a line where a passage is shown as one."""

HEADING_ROOM = 8
"""Cells; in less, the start of a heading tells nothing."""

Spans = tuple[tuple[int, int], ...]


def shown(text: str, spans: Iterable[tuple[int, int]], *, line_end: str = "\n", tab: str = "    ") -> Content:
    """The text made visible, with the words at `spans` marked; spans may overlap or lie outside."""
    parts: list[str] = []
    marks: list[Span] = []
    at = length = 0
    for start, end in sorted(spans):
        start, end = max(start, at), min(end, len(text))  # noqa: PLW2901
        if start >= end:
            continue
        for piece, marked in ((text[at:start], False), (text[start:end], True)):
            made = legible(piece).replace("\n", line_end).replace("\t", tab)
            if marked:
                marks.append(Span(length, length + len(made), MATCH))
            parts.append(made)
            length += len(made)
        at = end
    parts.append(legible(text[at:]).replace("\n", line_end).replace("\t", tab))
    return Content("".join(parts), marks)


def passage(citation: Citation, width: int, height: int) -> list[Content]:
    """At most `height` lines of at most `width` cells around the first matched word."""
    if width < 1:
        return []
    text, room = citation.text, width * height
    start = _start(text, citation.matches, room)
    end = min(len(text), start + 2 * room)
    body = shown(
        text[start:end], [(a - start, b - start) for a, b in citation.matches], line_end=LINE_END, tab=" "
    )
    if start:
        body = Content("… ") + body
    lines = body.wrap(width)
    if len(lines) > height or end < len(text):
        lines = lines[:height]
        lines[-1] = _with_ellipsis(lines[-1], width)
    return lines


def _start(text: str, matches: Spans, room: int) -> int:
    """Where to begin so that the first match is seen: at the start, its line, or some words before it."""
    first = matches[0][0] if matches else 0
    if first < room * 2 // 3:
        return 0
    line = text.rfind("\n", 0, first) + 1
    if first - line < room // 2:
        return line
    before = first - room // 3
    space = text.find(" ", before, first)
    return before if space < 0 else space + 1


def _with_ellipsis(line: Content, width: int) -> Content:
    if line.cell_length < width:
        return line + Content("…")
    return line.truncate(width - 1) + Content("…")


def freshness_text(freshness: Freshness | None) -> Content:
    """A sign and a word; unchecked is only a point."""
    if freshness is None:
        return Content.styled("·", "$text-muted")
    return Content.styled(f"{SIGNS[freshness.state]} {freshness}", STYLES[freshness.state])


def measure(citation: Citation) -> str:
    """The distance to the query or, where there is none, the score."""
    if citation.distance is not None:
        return f"dist {citation.distance:.2f}"
    return f"score {citation.score:.2f}"


def reference(citation: Citation, width: int) -> Content:
    """`path:Lstart-Lend` in at most `width` cells: the lines always, of the path the end."""
    lines = f":L{citation.line_start}-L{citation.line_end}"
    room = max(width - len(lines), 1)
    path = plain(citation.path[-4 * room :] if len(citation.path) > 4 * room else citation.path)
    return Content.assemble((cut_path(path, room), "bold"), (lines, "bold"))


def header(citation: Citation, freshness: Freshness | None, width: int, *, folder: str = "") -> Content:
    """The first line of a citation: reference and headings left, freshness and distance right."""
    right = Content.assemble(freshness_text(freshness), f"  {measure(citation)}")
    room = max(width - right.cell_length - 2, 1)
    left = reference(citation, room)
    rest = room - left.cell_length - 2
    copies = f"+{count(citation.copies, 'copy', 'copies')}" if citation.copies else ""
    context = " / ".join(part for part in (copies, folder, *citation.heading) if part)
    if context and rest >= HEADING_ROOM:
        left = Content.assemble(left, ("  " + cut(plain(context[: 4 * rest]), rest), "$text-muted"))
    gap = max(width - left.cell_length - right.cell_length, 1)
    return Content.assemble(left, " " * gap, right).truncate(width)


def explained(explanation: Explanation | None, width: int) -> Content:
    """One line: rank and score in each list, and the fused score."""
    if explanation is None:
        return Content.styled(cut("not explained", width), "$text-muted")
    parts = [
        _listed("keyword", explanation.keyword_rank, explanation.keyword_score),
        _listed("vector", explanation.vector_rank, explanation.vector_score),
        f"fused {explanation.fused_score:.3f}",
    ]
    return Content.styled(cut(" · ".join(parts), width), "$text-muted")


def _listed(name: str, rank: int | None, score: float | None) -> str:
    if rank is None:
        return f"not by {name}"
    return f"{name} #{rank}" if score is None else f"{name} #{rank} {score:.3f}"


def row(content: Content, width: int) -> Content:
    """The content as one line of exactly `width` cells."""
    if cell_len(content.plain) > width:
        return content.truncate(width)
    return content.pad_right(width - content.cell_length)
