"""Citations against the disk as it is now: is the text still there, did it move, and what stands around it.

Everything here blocks on the disk and is called in a thread.
"""

from __future__ import annotations

from engine.errors import NoteError
from engine.notes import disk
from engine.notes.blocks import split_lines
from engine.notes.chunking import decode
from engine.notes.model import Citation, Freshness, FreshnessState, Preview


def freshness(citation: Citation) -> Freshness:
    """Whether the cited text still stands at the cited lines of its file."""
    lines = _lines(citation)
    if lines is None:
        return Freshness(FreshnessState.GONE)
    return _compare(citation, lines)


def preview(citation: Citation, context: int) -> Preview:
    """The cited lines with up to `context` lines before and after, following a passage that moved."""
    lines = _lines(citation)
    if lines is None:
        text = tuple(split_lines(citation.text))
        span = (citation.line_start, citation.line_start + len(text) - 1)
        return Preview(citation.line_start, text, span, Freshness(FreshnessState.GONE))
    fresh = _compare(citation, lines)
    start, end = fresh.line_start or citation.line_start, fresh.line_end or citation.line_end
    start, end = min(start, max(1, len(lines))), min(end, max(1, len(lines)))
    first = max(1, start - context)
    return Preview(first, tuple(lines[first - 1 : end + context]), (start, end), fresh)


def _lines(citation: Citation) -> list[str] | None:
    try:
        reading = disk.read(citation.file)
        return None if reading is None else split_lines(decode(reading.raw))
    except NoteError:
        return None


def _compare(citation: Citation, lines: list[str]) -> Freshness:
    start, end = citation.line_start, citation.line_end
    if citation.text in "\n".join(lines[start - 1 : end]):
        return Freshness(FreshnessState.SAME, start, end)
    wanted = citation.text.split("\n")
    places = _places(wanted, lines)
    if not places:
        return Freshness(FreshnessState.CHANGED)
    nearest = min(places, key=lambda place: abs(place - start))
    return Freshness(FreshnessState.MOVED, nearest, nearest + len(wanted) - 1)


def _places(wanted: list[str], lines: list[str]) -> list[int]:
    """The 1-based lines at which the wanted text stands; a single piece may stand inside a line."""
    if len(wanted) == 1:
        return [number for number, line in enumerate(lines, 1) if wanted[0] in line]
    first, rest, last = wanted[0], wanted[1:-1], wanted[-1]
    count = len(wanted)
    return [
        number
        for number, line in enumerate(lines[: len(lines) - count + 1], 1)
        if line.endswith(first)
        and lines[number : number + count - 2] == rest
        and lines[number + count - 2].startswith(last)
    ]
