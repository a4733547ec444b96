"""From a path to what the index will hold of it: read, hash, compare, chunk, split into terms.

Pure work on one file at a time, called in a thread; the database is not touched here.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import NoteError
from engine.notes import disk
from engine.notes.chunking import Chunk, chunk, decode
from engine.text.tokens import terms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from engine.notes.jobs import Claimed
    from engine.notes.model import JobId

_log = logging.getLogger("noctuary.worker")

FORMAT = 1
"""How notes are chunked and their terms made: raised whenever either changes, so that what an older
program indexed is drift and mends itself."""

TERMS_FORMAT = 1
"""How the terms of a text are made: raised, together with FORMAT, only when that changes. While it stays,
a text that is chunked as before keeps its passage; when it is raised, the text is posted again."""

PORTION = 4 * 1024 * 1024
"""Bytes of new text after which a batch ends: its terms, counted, take ten times that, and three
batches are in memory at once (one is prepared, one waits, one is written)."""

MAX_LENGTH = 65_535
"""A passage's length in terms as its postings can hold it (two bytes)."""


@dataclass(frozen=True, slots=True)
class PassageText:
    """A distinct text under its heading path, with its terms counted."""

    hash: bytes
    heading: str
    text: str
    terms: Counter[str]
    length: int

    @classmethod
    def of(cls, identity: bytes, heading: str, piece: Chunk, shared: dict[str, str]) -> PassageText:
        """The passage of a chunk. Its length is terms with repeats, as far as a posting can hold it.

        `shared` holds each word once for all passages of a note: they are a third of its memory.
        """
        counts = Counter([shared.setdefault(term, term) for term in indexed_terms(piece)])
        return cls(identity, heading, piece.text, counts, min(counts.total(), MAX_LENGTH))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage stands in its file: 1-based inclusive lines."""

    line_start: int
    line_end: int
    passage: bytes


@dataclass(frozen=True, slots=True)
class Content:
    """A note as read. `places` is None when its bytes are those already indexed."""

    job: Claimed
    stamp: disk.Stamp
    hash: bytes
    places: tuple[Place, ...] | None
    passages: Mapping[bytes, PassageText] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gone:
    """No note stands at the path, or it is one that is not indexed."""

    job: Claimed


@dataclass(frozen=True, slots=True)
class Unready:
    """The note is being written right now."""

    job: Claimed


@dataclass(frozen=True, slots=True)
class Faulty:
    """The note cannot be indexed, with the sentence a human will read."""

    job: Claimed
    error: str


Prepared = Content | Gone | Unready | Faulty


def passage_hash(heading: str, text: str) -> bytes:
    """The identity of a passage: sha256 of its heading path and its text."""
    return hashlib.sha256(f"{heading}\0{text}".encode()).digest()


def prepare(
    jobs: Sequence[Claimed],
    known: Mapping[tuple[int, str], bytes],
    restless: AbstractSet[JobId] = frozenset(),
) -> list[Prepared]:
    """Prepare a batch, or its beginning when that holds PORTION bytes or more of new text.

    `known` maps (folder, path) to the sha256 the index has of the file. Notes of `restless` jobs kept
    changing often enough: they are taken as far as they can be read, or fail.
    """
    prepared: list[Prepared] = []
    size = 0
    for job in jobs:
        item = _prepare(job, known.get((job.folder, job.path)), job.id in restless)
        prepared.append(item)
        size += item.stamp.size if isinstance(item, Content) and item.places is not None else 0
        if size >= PORTION:
            break
    return prepared


def _prepare(job: Claimed, known: bytes | None, restless: bool) -> Prepared:
    try:
        return _as_it_stands(job, known, restless)
    except disk.Unsettled as error:
        return Faulty(job, str(error)) if restless else Unready(job)
    except NoteError as error:
        return Faulty(job, str(error))
    # A fault of ours that one note brings to light is that note's failure, logged in full: the others go on.
    except Exception as error:  # noqa: BLE001
        _log.error("%s could not be prepared", job.file, exc_info=error)
        return Faulty(job, f"{job.file} cannot be indexed: {type(error).__name__}: {error}.")


def _as_it_stands(job: Claimed, known: bytes | None, restless: bool) -> Content | Gone:
    if disk.excluded(job.root, job.path):
        return Gone(job)
    reading = disk.read(job.file, growing=restless)
    if reading is None:
        return Gone(job)
    digest = hashlib.sha256(reading.raw).digest()
    if digest == known:
        return Content(job, reading.stamp, digest, None)
    return _chunked(job, reading, digest)


def _chunked(job: Claimed, reading: disk.Reading, digest: bytes) -> Content:
    places: list[Place] = []
    shared: dict[str, str] = {}
    passages: dict[bytes, PassageText] = {}
    for piece in chunk(_text(job, reading)):
        heading = "\n".join(piece.heading)
        identity = passage_hash(heading, piece.text)
        places.append(Place(piece.line_start, piece.line_end, identity))
        if identity not in passages:
            passages[identity] = PassageText.of(identity, heading, piece, shared)
    return Content(job, reading.stamp, digest, tuple(places), passages)


def _text(job: Claimed, reading: disk.Reading) -> str:
    try:
        return decode(reading.raw)
    except NoteError as error:
        raise NoteError(f"{job.file}: {error.message}", remedy=error.remedy) from error


def indexed_terms(piece: Chunk) -> list[str]:
    """The terms a passage is found by: its own, and those of the headings above it."""
    return terms(piece.text) + terms("\n".join(piece.heading))
