"""The nouns of memory: brains, turns, what is recalled, lessons and where they came from.

Nothing here touches the database, so screens and commands can import it for free. Times are in UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

BrainId = NewType("BrainId", int)

LOCAL = "local"
"""The account of who sits at the keyboard."""

LONGEST_KEY = 256
"""Characters of an end user's name."""

LONGEST_TURN = 2_000_000
"""Characters of what is said in one turn, or answered to it: more is refused."""


@dataclass(frozen=True, slots=True)
class BrainKey:
    """The whole key of a brain. `core` None: the account's default one; `user` '': the core's own brain."""

    account: str = LOCAL
    core: str | None = None
    user: str = ""


@dataclass(frozen=True, slots=True)
class Core:
    """An isolated part of an account's memory."""

    slug: str
    name: str
    is_default: bool
    account: str = LOCAL


class Kind(StrEnum):
    """What a turn is to the memory."""

    RAW = "raw"
    CORRECTION = "correction"
    OVERWRITE = "overwrite"
    """It claims another value for what the user said of himself, and corrects nothing: unconfirmed."""


CONFIDENCE: Mapping[Kind, float] = {Kind.RAW: 0.50, Kind.CORRECTION: 0.70, Kind.OVERWRITE: 0.15}
"""How far a packet is believed: a fact of the seeds."""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A turn says of its user what differs from what is known."""

    key: str
    known: str
    claimed: str

    def __str__(self) -> str:
        return f"{self.key}: known as {self.known!r}, now said to be {self.claimed!r}"


@dataclass(frozen=True, slots=True)
class Source:
    """A turn that was recalled. `similarity` (0..1) is the fused relevance, `score` that times confidence."""

    packet: int
    input: str
    response: str
    similarity: float
    confidence: float
    score: float
    kind: Kind
    at: datetime
    channel: str = ""
    speaker: str = ""
    recalled: bool = False
    distance: float | None = None


@dataclass(frozen=True, slots=True)
class GivenLesson:
    """A lesson as it is given with a turn."""

    id: int
    text: str
    similarity: float | None
    reinforced: int
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Recalled:
    """What memory has to say to a text. No sources is an answer: not known here. `notes` are sentences on
    what limits it.
    """

    lessons: tuple[GivenLesson, ...]
    sources: tuple[Source, ...]
    coherence: float | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn prepared for a model. `turn_token` is None when the gate declined it."""

    messages: tuple[Mapping[str, str], ...]
    recalled: Recalled
    allowed: bool
    reason: str | None
    turn_token: str | None
    contradiction: Contradiction | None = None

    @property
    def coherence(self) -> float | None:
        """That of what was recalled."""
        return self.recalled.coherence


@dataclass(frozen=True, slots=True)
class Verified:
    """What memory says of an answer before it is given."""

    ok: bool
    reason: str | None
    coherence: float | None
    contradiction: Contradiction | None


@dataclass(frozen=True, slots=True)
class Recorded:
    """A turn that was kept. `again` tells that it had been kept before, with the same token."""

    packet: int
    kind: Kind
    confidence: float
    masked: int = 0
    recalled: bool = False
    again: bool = False
    contradiction: Contradiction | None = None


@dataclass(frozen=True, slots=True)
class PacketRow:
    """A packet for people and lists."""

    id: int
    input: str
    response: str
    kind: Kind
    confidence: float
    at: datetime
    channel: str
    speaker: str
    origin: str
    recalled: bool
    embedded: bool


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts of one brain. `coherence` is the mean of that of the turns prepared of late."""

    packets: int
    corrections: int
    overwrites: int
    recalled: int
    pending_embeddings: int
    lessons: int
    tombstones: int
    waiting_clusters: int
    unseen_packets: int
    """Not yet looked at by a synthesis."""
    channels: int
    last_recorded_at: datetime | None
    last_synthesis_at: datetime | None
    coherence: float | None


class LessonState(StrEnum):
    """Where a lesson stands."""

    LIVING = "living"
    EXPIRED = "expired"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Lesson:
    """A standing rule. `days_left` may be negative: it has expired; None: it is pinned and does not."""

    id: int
    brain: BrainId
    core: str
    user: str
    text: str
    state: LessonState
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    uses: int
    reinforced: int
    pinned: bool
    sources: int
    """How many packets it came from."""
    new: bool = False
    """It came, or was learned again, since the person's last visit to the pane."""
    edited_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_by: str = ""
    reason: str = ""

    @property
    def reference(self) -> str:
        """What names it for people: L12."""
        return f"L{self.id}"

    def days_left(self, now: datetime) -> float | None:
        """Days until it expires."""
        return None if self.pinned else (self.expires_at - now).total_seconds() / 86400


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """A turn that a lesson or cluster came from, with who said it and whether it was recalled text."""

    packet: int
    at: datetime
    channel: str
    origin: str
    kind: Kind
    speaker: str
    input: str
    input_recalled: bool
    response: str
    response_recalled: bool


@dataclass(frozen=True, slots=True)
class AuditRow:
    """What was done to a lesson, by whom and when."""

    at: datetime
    actor: str
    action: str
    lesson: int | None
    before: Mapping[str, object] | None
    after: Mapping[str, object] | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LessonDetail:
    """A lesson with the turns it came from and its history, oldest first."""

    lesson: Lesson
    sources: tuple[SourceTurn, ...]
    history: tuple[AuditRow, ...]


@dataclass(frozen=True, slots=True)
class LessonFilter:
    """Which lessons: by words in the text, core, end user, age and use. Only living ones unless told."""

    text: str = ""
    core: str | None = None
    user: str | None = None
    older_than_days: float | None = None
    unused: bool = False
    new: bool = False
    state: LessonState | None = LessonState.LIVING
    """None: of every state."""
    id: int | None = None


@dataclass(frozen=True, slots=True)
class LessonCounts:
    """What the Lessons pane and the Inbox count, over all brains."""

    living: int
    new: int
    expiring: int
    """Within 7 days."""
    tombstones: int
    waiting: int
    """Clusters that wait for a distiller."""
    oldest_new: datetime | None
    oldest_waiting: datetime | None
    soonest_expiry: datetime | None


class ClusterState(StrEnum):
    """What became of a cluster."""

    WAITING = "waiting"
    CREATED = "created"
    STRENGTHENED = "strengthened"
    """A living lesson said nearly the same."""
    TOMBSTONED = "tombstoned"
    """A human had deleted nearly the same: not written."""
    NOTHING = "nothing"
    """NONE: nothing durable in it."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Turns that are about the same. `error` tells why the last attempt to distil it failed."""

    id: int
    brain: BrainId
    core: str
    user: str
    run: int
    state: ClusterState
    packets: int
    corrections: int
    cohesion: float
    created_at: datetime
    attempts: int = 0
    error: str = ""
    lesson: int | None = None


@dataclass(frozen=True, slots=True)
class SynthesisRun:
    """One learning step of one brain and its yield. `state`: running, completed or failed."""

    id: int
    brain: BrainId
    core: str
    user: str
    distiller: str
    actor: str
    state: str
    started_at: datetime
    finished_at: datetime | None
    packets_scanned: int
    clusters: int
    created: int
    strengthened: int
    tombstoned: int
    nothing: int
    failed: int
    waiting: int = 0
    """Clusters that wait for a distiller after it."""
    model: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SynthesisStep:
    """How far a run is: `done` of `total` clusters."""

    brain: BrainId
    core: str
    user: str
    done: int
    total: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class ClusterPrompt:
    """A cluster for the caller's model."""

    id: int
    prompt: str


@dataclass(frozen=True, slots=True)
class SynthesisBatch:
    """Clusters handed to the caller's model. No token means there is nothing to learn."""

    token: str | None
    system: str
    clusters: tuple[ClusterPrompt, ...]
    packets_scanned: int


@dataclass(frozen=True, slots=True)
class Distilled:
    """What became of one cluster when a rule was given for it. `lesson` is the one made or strengthened."""

    cluster: int
    state: ClusterState
    lesson: int | None = None
    note: str = ""
