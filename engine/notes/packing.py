"""Passages, their places and their postings in PostgreSQL's binary COPY format.

All of it is made before the writers' lock is taken: while it is held nobody else writes, and what Python
does in it, every worker waits for. Format: PostgreSQL documentation, COPY, "Binary Format".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.text.ranking import POSTING, postings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from engine.notes.prepare import PassageText

    Ids = NDArray[np.int32]

_HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
_END = struct.pack("!h", -1)
_LEFT_OUT = 0
"""The id of a passage that is not to be posted; identities begin at 1."""

_count = struct.Struct("!h").pack
_size = struct.Struct("!i").pack
_integer = struct.Struct("!ii").pack
_small = struct.Struct("!ih").pack


class _Numbers(dict[str, int]):
    """Numbers words in the order in which they are asked for."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(frozen=True, slots=True)
class Postings:
    """The postings of some passages, by term and then in the order of the passages.

    `ends` has for each of `words`, in byte order, where its postings end; `place` which of the passages
    each belongs to, from 0; `entries` the postings themselves, without a passage yet.
    """

    words: tuple[str, ...]
    ends: NDArray[np.int64]
    place: NDArray[np.intp]
    entries: NDArray[np.void]

    @classmethod
    def of(cls, passages: Sequence[PassageText]) -> Postings:
        """Those of all terms of the passages."""
        numbers = _Numbers()
        found: list[int] = []
        frequencies: list[int] = []
        for text in passages:
            found += map(numbers.__getitem__, text.terms)
            frequencies += text.terms.values()
        words = tuple(sorted(numbers))  # by code point, which is the order of UTF-8's bytes
        rank = np.empty(len(words), dtype=np.intp)
        rank[[numbers[word] for word in words]] = np.arange(len(words))
        ranks = rank[found] if found else np.empty(0, dtype=np.intp)
        order = np.argsort(ranks, kind="stable")
        place = np.repeat(np.arange(len(passages)), [len(text.terms) for text in passages])[order]
        lengths = np.array([text.length for text in passages], dtype=np.int64)[place]
        return cls(
            words,
            np.cumsum(np.bincount(ranks, minlength=len(words))),
            place,
            postings(0, lengths, np.array(frequencies, dtype=np.int64)[order]),
        )

    def rows(self, segment: int, ids: Ids) -> bytes:
        """The rows of `posting` (term, segment, data) when the passages have these ids, ascending.

        A passage with the id 0 is left out, and so is a term that stands in no other.
        """
        entries, ends = self.entries.copy(), self.ends
        entries["passage"] = ids[self.place]
        if not ids.all():
            kept = entries["passage"] != _LEFT_OUT
            ends = np.concatenate(([0], np.cumsum(kept)))[ends]
            entries = entries[kept]
        data, middle = entries.tobytes(), _integer(4, segment)
        parts, start = [_HEAD], 0
        for word, end in zip(self.words, (ends * POSTING.itemsize).tolist(), strict=True):
            if end > start:
                term = word.encode()
                parts += (_count(3), _size(len(term)), term, middle, _size(end - start), data[start:end])
                start = end
        parts.append(_END)
        return b"".join(parts)


def passage_rows(format_: int, passages: Iterable[tuple[int, PassageText]]) -> bytes:
    """Rows of `passage` (id, hash, format, heading, text, length)."""
    parts = [_HEAD]
    written = _small(2, format_)
    for identity, passage in passages:
        heading, text = passage.heading.encode(), passage.text.encode()
        parts += (
            _count(6), _integer(4, identity), _size(len(passage.hash)), passage.hash, written,
            _size(len(heading)), heading, _size(len(text)), text, _integer(4, passage.length),
        )  # fmt: skip
    parts.append(_END)
    return b"".join(parts)


def place_rows(files: Sequence[int], counts: Sequence[int], places: Sequence[tuple[int, int, int]]) -> bytes:
    """Rows of `chunk` (file, position, line_start, line_end, passage).

    `places` are (line_start, line_end, passage) of all files, one after another; `counts` tells how many of
    them each file has.
    """
    starts = np.cumsum(counts) - counts
    positions = np.arange(len(places)) - np.repeat(starts, counts)
    numbers = np.asarray(places, dtype=np.int64).reshape(-1, 3)
    owners = np.repeat(np.asarray(files, dtype=np.int64), counts)
    return _numbers(*((">i4", column) for column in (owners, positions, *numbers.T)))


def pending_rows(model: int, priorities: Mapping[int, int]) -> bytes:
    """Rows of `embedding` (model, passage, priority) that wait for their vectors; `priorities` by passage."""
    count = len(priorities)
    return _numbers(
        (">i2", np.full(count, model)),
        (">i4", np.fromiter(priorities, dtype=np.int64, count=count)),
        (">i8", np.fromiter(priorities.values(), dtype=np.int64, count=count)),
    )


def _numbers(*columns: tuple[str, NDArray[np.integer]]) -> bytes:
    """Rows of integers, each column with its type in PostgreSQL's byte order."""
    fields = [
        field
        for place, (kind, _) in enumerate(columns)
        for field in ((f"size {place}", ">i4"), (f"value {place}", kind))
    ]
    rows = np.empty(len(columns[0][1]), dtype=[("fields", ">i2"), *fields])
    rows["fields"] = len(columns)
    for place, (kind, values) in enumerate(columns):
        rows[f"size {place}"] = np.dtype(kind).itemsize
        rows[f"value {place}"] = values
    return _HEAD + rows.tobytes() + _END
