"""Citations against the disk as it is now: is the text still there, did it move, and what stands around it.

Everything here blocks on the disk and is called in a thread.
"""

from __future__ import annotations

from engine.errors import NoteError
from engine.notes import disk
from engine.notes.blocks import split_lines
from engine.notes.chunking import MAX, TARGET, chunk, decode
from engine.notes.model import Citation, Freshness, FreshnessState, Preview
from engine.notes.splitting import stands_at_cuts

SHORTEST_CUT = TARGET // 4
"""Characters that a line has at least when it is cut: a piece is aimed at no fewer."""

SHORTEST_PIECE = TARGET // 8
"""Characters below which a text is not taken for a piece of a line that was written in since: a short
note of its own may stand in any long line."""


def freshness(citation: Citation) -> Freshness:
    """Whether the cited text still stands at the cited lines of its file."""
    lines = _lines(citation)
    return Freshness(lines) if isinstance(lines, FreshnessState) else _compare(citation, lines)


def preview(citation: Citation, context: int) -> Preview:
    """The cited lines with up to `context` lines before and after, following a passage that moved."""
    lines = _lines(citation)
    if isinstance(lines, FreshnessState):
        text = tuple(split_lines(citation.text))
        span = (citation.line_start, citation.line_start + len(text) - 1)
        return Preview(citation.line_start, text, span, Freshness(lines))
    fresh = _compare(citation, lines)
    start, end = fresh.line_start or citation.line_start, fresh.line_end or citation.line_end
    start, end = min(start, max(1, len(lines))), min(end, max(1, len(lines)))
    first = max(1, start - context)
    return Preview(first, tuple(lines[first - 1 : end + context]), (start, end), fresh)


def _lines(citation: Citation) -> list[str] | FreshnessState:
    """The lines of the file; in their place what holds of every citation of a file that has none."""
    try:
        reading = disk.read(citation.file)
        return FreshnessState.GONE if reading is None else split_lines(decode(reading.raw))
    except NoteError:  # there, and no text any more, or none that we may see: not what was indexed
        return FreshnessState.CHANGED


def _compare(citation: Citation, lines: list[str]) -> Freshness:
    start, end = citation.line_start, citation.line_end
    wanted = citation.text.split("\n")
    if lines[start - 1 : end] == wanted:
        return Freshness(FreshnessState.SAME, start, end)
    places = _whole(wanted, lines) or _pieces(wanted, lines)
    if not places:
        return Freshness(FreshnessState.CHANGED)
    nearest = min(places, key=lambda place: abs(place - start))
    state = FreshnessState.SAME if nearest == start else FreshnessState.MOVED
    return Freshness(state, nearest, nearest + len(wanted) - 1)


def _whole(wanted: list[str], lines: list[str]) -> list[int]:
    """The 1-based lines at which the wanted lines stand, each as a whole."""
    count = len(wanted)
    return [
        number
        for number, line in enumerate(lines[: max(0, len(lines) - count + 1)], 1)
        if line == wanted[0] and lines[number - 1 : number - 1 + count] == wanted
    ]


def _pieces(wanted: list[str], lines: list[str]) -> list[int]:
    """The 1-based lines at which the wanted text stands as a piece of an over-long line.

    Only its last line is then a part of a line; what stands above it (headings, short lines) is whole.
    """
    above, piece = wanted[:-1], wanted[-1]
    over = len("\n".join(wanted)) - len(piece)  # what stands above counts when a line is cut
    found = [
        number
        for number in range(1, len(lines) - len(above) + 1)
        if piece in (line := lines[number - 1 + len(above)])
        and over + len(line) > SHORTEST_CUT
        and lines[number - 1 : number - 1 + len(above)] == above
    ]
    if not found:
        return []
    text = "\n".join(wanted)
    cut = {each.line_start for each in chunk("\n".join(lines)) if each.text == text}
    return [
        number
        for number in found
        if number in cut or _stands_in_long_line(piece, lines[number - 1 + len(above)], first=bool(above))
    ]


def _stands_in_long_line(piece: str, line: str, *, first: bool) -> bool:
    """Whether a line that was written in elsewhere would still be cut around the piece."""
    if len(line) <= MAX or len(piece) < SHORTEST_PIECE:
        return False
    return stands_at_cuts(piece, line, first=first)
