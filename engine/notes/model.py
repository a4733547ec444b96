"""The nouns of the notes: frozen values that cross the border between engine and doors.

Nothing here touches the database or the disk, so screens and commands can import it for free.
Times are aware datetimes in UTC; distances are cosine distances (0 the same, 2 opposite).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NewType

from engine.models.embedding.base import PullProgress as PullProgress  # noqa: PLC0414  (for the doors)
from engine.notes.compared import Compared as Compared  # noqa: PLC0414
from engine.notes.compared import CompareStep as CompareStep  # noqa: PLC0414
from engine.notes.compared import Comparison as Comparison  # noqa: PLC0414

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

FolderId = NewType("FolderId", int)
JobId = NewType("JobId", int)
PassageId = NewType("PassageId", int)

MOST_CITATIONS = 200
"""Citations one search gives at most."""

BY_WORDS = "Searched by keyword alone"
"""How a search says that no model made its vector, before the reason."""

NO_EVIDENCE = "No evidence found for that query."
"""An empty answer in words, the same on every screen and door."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A root folder of notes that is kept indexed."""

    id: FolderId
    path: Path
    added_at: datetime
    files: int = 0


class JobKind(StrEnum):
    """What a job asks for; what stands on the disk then decides what is done."""

    INGEST_PATH = "ingest_path"
    DELETE_PATH = "delete_path"


class JobStatus(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Job:
    """One row of the queue. `path` is relative to its folder, with `/` between its parts."""

    id: JobId
    kind: JobKind
    status: JobStatus
    folder: Path
    path: str
    attempts: int
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    worker: str | None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """How many jobs stand in each status, and how fast they are done (jobs a second, last minute)."""

    pending: int = 0
    processing: int = 0
    done: int = 0
    failed: int = 0
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """The backlog of passages that have no vector of the model in use yet.

    `rate` is passages a second over the last minute (0 when idle); `seconds_left` is None when the
    rate is unknown; `failed` counts passages the model could not embed. `proven` says that this process
    made a vector with the model; `trouble` why the last one it asked for was not made. `serving` is the
    model that answers searches until this one has its vectors; empty when it answers itself. `suggestion`
    is a sentence that suggests another model, where this one does not read much of the notes.
    """

    model: str
    embedded: int
    pending: int
    failed: int = 0
    rate: float = 0.0
    seconds_left: float | None = None
    proven: bool = False
    trouble: str = ""
    serving: str = ""
    suggestion: str = ""

    @property
    def total(self) -> int:
        """Passages in all."""
        return self.embedded + self.pending + self.failed


@dataclass(frozen=True, slots=True)
class ModelRow:
    """An embedding model the index knows, and how many passages have its vector, wait for it, or could not
    be read. `complete_at` is when it first had them all; `making` says that vectors are made with it now,
    `answers` that searches are answered by it.
    """

    name: str
    provider: str
    model: str
    dimension: int
    complete_at: datetime | None
    embedded: int
    pending: int
    failed: int
    making: bool = False
    answers: bool = False


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """What a model did when it was tried; distances are cosine distances to the question."""

    provider: str
    model: str
    dimension: int
    ready_seconds: float
    query_ms: float
    passages_per_second: float
    answer_distance: float
    other_distance: float
    default_distance: float


@dataclass(frozen=True, slots=True)
class FailedPassage:
    """A passage the model could not embed, at the newest place where it stands, with the reason."""

    id: PassageId
    folder: Path
    path: str
    line_start: int
    line_end: int
    error: str

    @property
    def reference(self) -> str:
        """`path:Lstart-Lend`."""
        return f"{self.path}:L{self.line_start}-L{self.line_end}"


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What the index holds now."""

    folders: int
    files: int
    chunks: int
    passages: int


class DriftCause(StrEnum):
    """Why index and disk differ on one path: the five causes."""

    NOT_INDEXED = "not_indexed"
    ORPHANED = "orphaned"
    CHANGED = "changed"
    OTHER_MODEL = "other_model"
    JOB_FAILED = "job_failed"


@dataclass(frozen=True, slots=True)
class DriftRow:
    """One path on which index and disk differ. `detail` is a sentence for the screen; `queued` says
    that a job for it waits or runs, so that it needs nobody.
    """

    cause: DriftCause
    folder: Path
    path: str
    detail: str
    since: datetime | None = None
    queued: bool = False

    @property
    def key(self) -> str:
        """A stable identity for marks and row keys."""
        return f"{self.cause}\0{self.folder}\0{self.path}"


@dataclass(frozen=True, slots=True)
class FolderProblem:
    """A folder whose disk side cannot be seen now: it is kept as it was, and said so."""

    folder: Path
    reason: str


@dataclass(frozen=True, slots=True)
class DriftReport:
    """Index against disk at one moment."""

    at: datetime
    rows: tuple[DriftRow, ...]
    files_on_disk: int
    files_in_index: int
    seconds: float
    problems: tuple[FolderProblem, ...] = ()

    def counts(self) -> Mapping[DriftCause, int]:
        """Rows by cause; every cause is present, also with 0."""
        totals = dict.fromkeys(DriftCause, 0)
        for row in self.rows:
            totals[row.cause] += 1
        return totals


class Mode(StrEnum):
    """Which lists a search draws on."""

    HYBRID = "hybrid"
    KEYWORD = "keyword"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a citation stood in each list: 1-based rank and raw score; None where it was absent."""

    keyword_rank: int | None
    keyword_score: float | None
    vector_rank: int | None
    vector_score: float | None
    fused_score: float


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that answers, with the exact 1-based inclusive line range it has in its file.

    `distance` is the cosine distance to the query, None while the passage has no vector yet or the
    search was by keyword alone. `text` is the text of the passage as it was indexed; `matches` are
    the (start, end) offsets in `text` of the words that matched the query. `heading` is the path of
    headings above it. `copies` is in how many further places the same passage stands.
    """

    folder: Path
    path: str
    line_start: int
    line_end: int
    text: str
    distance: float | None
    score: float
    heading: tuple[str, ...] = ()
    matches: tuple[tuple[int, int], ...] = ()
    copies: int = 0
    explanation: Explanation | None = None

    @property
    def reference(self) -> str:
        """`path:Lstart-Lend`, the form that is shown and copied."""
        return f"{self.path}:L{self.line_start}-L{self.line_end}"

    @property
    def file(self) -> Path:
        """The cited file on the disk."""
        return self.folder / self.path


class FreshnessState(StrEnum):
    """Whether a cited text still stands where it was cited."""

    SAME = "same"
    MOVED = "moved"
    CHANGED = "changed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Freshness:
    """A citation checked against the disk. For `moved`, the lines where its text stands now."""

    state: FreshnessState
    line_start: int | None = None
    line_end: int | None = None

    def __str__(self) -> str:
        if self.state is FreshnessState.MOVED:
            return f"moved to L{self.line_start}-L{self.line_end}"
        return str(self.state)


@dataclass(frozen=True, slots=True)
class Preview:
    """Lines of a file around a cited span, as they are on the disk now.

    `first_line` is the 1-based number of `lines[0]`; `span` is the cited range (inclusive) in line
    numbers; it follows a moved passage. When the file is gone or no text any more, `lines` is the
    indexed text.
    """

    first_line: int
    lines: tuple[str, ...]
    span: tuple[int, int]
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, best first. `notes` are sentences on what limits the answer, for example
    that vectors are still being made or that the model does not read the query's language. Without
    `path_matches` no indexed file (in the folder, if one was named) matches the path pattern.
    """

    query: str
    mode: Mode
    citations: tuple[Citation, ...]
    seconds: float
    notes: tuple[str, ...] = ()
    path_matches: bool = True


class WatchMode(StrEnum):
    """How a folder's changes are noticed by this process."""

    EVENTS = "events"
    POLLING = "polling"
    ELSEWHERE = "elsewhere"
    STARTING = "starting"
    STOPPED = "stopped"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class WatchState:
    """A folder's watcher. `beat` is its last sign of life; `reason` says why it is not on events.

    Of a folder that is watched elsewhere, `process` is who watches it and `holder` in what mode.
    """

    folder: Path
    mode: WatchMode
    beat: datetime | None = None
    reason: str = ""
    process: str = ""
    holder: WatchMode | None = None


@dataclass(frozen=True, slots=True)
class ServiceFault:
    """A background service of this process that fell and is started again. `since`: its first fall."""

    service: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True)
class NotesStatus:
    """Everything the status line shows of the notes, in one snapshot."""

    watchers: tuple[WatchState, ...] = ()
    jobs: JobCounts = field(default_factory=JobCounts)
    embedding: EmbeddingProgress | None = None
    index: IndexCounts | None = None
    faults: tuple[ServiceFault, ...] = ()
