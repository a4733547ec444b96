"""Turns a note into chunks: passages with their exact line range and the path of headings above them.

Every non-blank line is in exactly one chunk's range (the pieces of one over-long line share its line),
and the text of a whole-line chunk is the text of these lines. The file itself is never touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import NoteError
from engine.notes.blocks import Block, find_fences, front_matter_end, scan, split_lines
from engine.notes.splitting import Measured, Piece, split_lines_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TARGET = 850
"""Characters a chunk is filled up to with blocks of one section: about 190 tokens, which fit the embedder's
window of 256 whole. With 700 the first five results cover 3 % less of what answers a question
(chunking_evaluation: .89 for .92); with 900 the mean chunk there exceeds 700 characters."""

MAX = 1150
"""Characters above which a block is over-long and is cut: one that is a little over the target reads
better whole. Still within the embedder's window for English prose; 1,100 to 1,200 measure the same."""

_TAIL = 120
"""A last block of a section shorter than this joins the chunk above it rather than stand alone."""

_LEAD_IN = 240
"""A paragraph up to this long that ends in a colon introduces the block below it and stays with it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a note.

    `line_start` and `line_end` are 1-based and inclusive. `text` is what stands in these lines, joined
    by newlines; it is a part of it only when a single over-long line had to be cut. `heading` holds the
    titles of the headings above it, outermost first, its own section's last.
    """

    line_start: int
    line_end: int
    text: str
    heading: tuple[str, ...] = ()


def decode(raw: bytes) -> str:
    """The text of a note's bytes: UTF-8, with or without a byte order mark.

    Raises:
        NoteError: the bytes are not UTF-8 text; the message says what they are and where it shows.
    """
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or _looks_utf16(raw):
        raise NoteError("The note is encoded as UTF-16, not UTF-8.", remedy="Save it as UTF-8.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NoteError(
            f"The note is not UTF-8: byte {error.start + 1} (0x{raw[error.start]:02x}) "
            f"in line {_line_of(raw, error.start)} cannot be decoded.",
            remedy="Save it as UTF-8.",
        ) from error
    zero = text.find("\0")
    if zero >= 0:
        at = len(text[:zero].encode())
        raise NoteError(
            f"The note holds a NUL byte: byte {at + 1} in line {_line_of(raw, at)}; it is not plain text.",
            remedy="Remove the byte, or keep the file out of the notes folder.",
        )
    return text.removeprefix("\ufeff")


def _looks_utf16(raw: bytes) -> bool:
    """UTF-16 without a mark: every other byte of its first characters is zero, for Western text."""
    head = raw[:64]
    return len(head) >= 4 and (not any(head[1::2]) or not any(head[::2]))


def _line_of(raw: bytes, at: int) -> int:
    before = raw[:at].replace(b"\r\n", b"\n")
    return before.count(b"\n") + before.count(b"\r") + 1


def chunk(text: str) -> list[Chunk]:
    """The chunks of a note in order of their lines; none for a text of nothing but white space."""
    lines = split_lines(text.removeprefix("\ufeff"))
    fences = find_fences(lines, front_matter_end(lines)) if "```" in text or "~~~" in text else {}
    source = Measured(lines, fences)
    chunks: list[Chunk] = []
    for section in _sections(scan(lines, fences), source):
        for piece in _pack(section, source):
            body = source.text(piece.start, piece.end) if piece.text is None else piece.text
            chunks.append(Chunk(piece.start + 1, piece.end, body, section.heading))
    return chunks


@dataclass(frozen=True, slots=True)
class _Section:
    """A run of headings, `start` to `head` (empty before the first heading), and the blocks below it."""

    start: int
    head: int
    blocks: Sequence[Block]
    heading: tuple[str, ...]


def _sections(blocks: Iterator[Block], source: Measured) -> Iterator[_Section]:
    """Groups blocks by heading; headings with nothing between them open one section together."""
    path: list[tuple[int, str]] = []
    body: list[Block] = []
    start = head = 0
    for block in blocks:
        if not block.level:
            body.append(block)
            continue
        if body or (head > start and source.size(start, block.end) > TARGET):
            yield _Section(start, head, body, _titles(path))
            body, head = [], 0
        if not head:
            start = block.start
        head = block.end
        while path and path[-1][0] >= block.level:
            path.pop()
        path.append((block.level, block.title))
    if body or head:
        yield _Section(start, head, body, _titles(path))


def _titles(path: Sequence[tuple[int, str]]) -> tuple[str, ...]:
    return tuple(title for _, title in path if title)


def _pack(section: _Section, source: Measured) -> Iterator[Piece]:
    """Fills chunks with the blocks of a section up to the target; over-long blocks are cut."""
    units = list(_units(section, source))
    start, end = units[0]
    for position, (unit_start, unit_end) in enumerate(units[1:], 2):
        size = source.size(start, unit_end)
        is_tail = position == len(units) and source.size(unit_start, unit_end) < _TAIL
        if size <= TARGET or (is_tail and size <= MAX):
            end = unit_end
            continue
        yield from _whole_or_split(section, source, start, end)
        start, end = unit_start, unit_end
    yield from _whole_or_split(section, source, start, end)


def _units(section: _Section, source: Measured) -> Iterator[tuple[int, int]]:
    """The ranges that stay together: a block with the headings and the lead-in above it."""
    start = section.start if section.head else section.blocks[0].start
    end = section.head or start
    held = section.head > 0
    for block in section.blocks:
        if held:
            end = block.end
        else:
            start, end = block.start, block.end
        held = _is_lead_in(block, source)
        if not held:
            yield start, end
    if held:
        yield start, end


_COLONS = (":", "：")  # noqa: RUF001
_BOLD_LINE = re.compile(r"(?:\*\*[^*]+\*\*|__[^_]+__):?$")


def _is_lead_in(block: Block, source: Measured) -> bool:
    """Whether a block introduces the next: a short one that ends in a colon, or a bold line of its own."""
    last = source.lines[block.end - 1].rstrip()
    if not last.endswith((*_COLONS, "**", "__")) or source.size(block.start, block.end) > _LEAD_IN:
        return False
    return last.endswith(_COLONS) or (block.end == block.start + 1 and _BOLD_LINE.match(last) is not None)


def _whole_or_split(section: _Section, source: Measured, start: int, end: int) -> Iterator[Piece]:
    if source.size(start, end) <= MAX:
        yield Piece(start, end)
    else:
        yield from split_lines_range(source, start, end, head=section.head, target=TARGET, limit=MAX)
