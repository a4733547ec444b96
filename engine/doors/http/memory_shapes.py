"""The shapes of memory's requests and answers: Khwan's names first, then ours."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads it
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from engine.doors.http.shapes import whole
from engine.memory.model import LONGEST_KEY, LONGEST_TURN, ClusterState, Kind

MOST_LESSONS = 1_000
LONGEST_TOKEN = 256
LONGEST_LESSON = 2_000

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY)]
Text = Annotated[str, Field(min_length=1, max_length=LONGEST_TURN)]
Token = Annotated[str, Field(min_length=1, max_length=LONGEST_TOKEN)]


def _iso(value: object) -> object:
    """A time as ISO 8601 writes it, and no number."""
    if not isinstance(value, str | None):
        raise PydanticCustomError("datetime_type", "Input should be a time as in ISO 8601")
    return value


class Shape(BaseModel):
    """What is read off the engine's own nouns."""

    model_config = ConfigDict(from_attributes=True)


class Contradiction(Shape):
    """The user says, or the answer says of him, what differs from what is known."""

    key: str
    known: str
    claimed: str


class Prepare(BaseModel):
    """A turn to be prepared."""

    input: Text
    model: str | None = Field(None, description="A hint of the client; nothing depends on it.")
    constitution: Name | None = Field(None, description="A file of the configuration folder, by its name.")
    channel: Name | None = Field(None, description="The conversation; left out: that of the day.")


class Message(BaseModel):
    """A message for the caller's model."""

    role: str
    content: str


class Source(Shape):
    """A turn that was recalled: untrusted history, never an instruction."""

    input: str
    response: str
    similarity: float
    confidence: float
    score: float = Field(description="Similarity times confidence: what they are ranked by.")
    packet: int
    kind: Kind
    at: datetime
    channel: str
    speaker: str
    recalled: bool = Field(description="It was itself recalled text.")


class Prepared(BaseModel):
    """What goes to the caller's model. No sources: it is not known here."""

    messages: list[Message]
    coherence: float | None
    lessons: list[str]
    sources: list[Source]
    allowed: bool
    reason: str | None = Field(description="Why the turn is declined.")
    turn_token: str | None = Field(description="To record the answer with; null when the turn is declined.")
    contradiction: Contradiction | None
    notes: list[str] = Field(description="Sentences on what limits the recall.")


class Record(BaseModel):
    """The answer to a prepared turn."""

    turn_token: Token
    answer: Text
    occurred_at: Annotated[datetime, BeforeValidator(_iso)] | None = Field(
        None,
        description="When the turn was, if not now; without a time zone it is UTC. From 1970 until now.",
    )


class Recorded(Shape):
    """A turn that was kept."""

    ok: Literal[True] = True
    packet: int
    kind: Kind
    confidence: float
    masked: int = Field(description="Secrets that were masked in it.")
    recalled: bool
    again: bool = Field(description="It had been kept before, by the same token.")
    contradiction: Contradiction | None


class Verify(BaseModel):
    """An answer before it is given."""

    answer: Text
    turn_token: Token | None = None


class Verified(Shape):
    """What memory says of it."""

    ok: bool
    reason: str | None
    coherence: float | None
    contradiction: Contradiction | None


class Lesson(BaseModel):
    """A standing rule."""

    id: str
    response_text: str
    source_link: str = Field(description="Leads to the turns it came from.")
    created_at: datetime
    created_by: str
    edited_at: datetime | None
    expires_at: datetime | None = Field(description="Null: it is pinned and does not.")
    last_used_at: datetime | None
    uses: int
    reinforced: int = Field(description="How often it was learned.")
    pinned: bool
    sources: int


class Lessons(BaseModel):
    """The living lessons, the most reinforced first."""

    lessons: list[Lesson]


class LessonText(BaseModel):
    """Another wording."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_LESSON, pattern=r"\S")]


class LessonDeleted(BaseModel):
    """A lesson that was thrown out. Its like is not learned again until a person lifts that."""

    ok: Literal[True] = True
    id: str
    deleted: Literal[True] = True


class SourceTurn(Shape):
    """A turn that a lesson came from, as it was said."""

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


class LessonSources(BaseModel):
    """A lesson with the turns it came from."""

    lesson: Lesson
    sources: list[SourceTurn]


class ClusterPrompt(Shape):
    """Turns that are about the same, as a prompt for the caller's model."""

    id: int
    prompt: str


class Batch(BaseModel):
    """What is to be distilled. A null token: there is nothing to learn."""

    synthesis_token: str | None
    system: str
    clusters: list[ClusterPrompt]
    packets_scanned: int


class Rule(BaseModel):
    """What was distilled of a cluster: one rule; null or NONE: nothing durable in it."""

    cluster_id: Annotated[int, Field(ge=1, le=2**31 - 1), BeforeValidator(whole)]
    text: Annotated[str, Field(max_length=LONGEST_TURN)] | None


class Rules(BaseModel):
    """What the caller's model made of a batch."""

    synthesis_token: Token
    lessons: Annotated[list[Rule], Field(max_length=MOST_LESSONS)]


class Outcome(BaseModel):
    """What became of a cluster."""

    cluster_id: int
    state: ClusterState
    lesson: str | None
    note: str


class Learned(BaseModel):
    """What a learning step came to. `skipped`: clusters of which no lesson came, for whatever reason."""

    status: Literal["completed", "failed", "skipped"]
    lessons_created: int
    skipped: int
    packets_scanned: int
    strengthened: int
    tombstoned: int = Field(description="Not written: a person had deleted the like.")
    nothing: int = Field(description="Nothing durable in them.")
    failed: int
    waiting: int = Field(description="Clusters that wait for a distiller.")


class Distilled(Learned):
    """What a batch came to, cluster by cluster."""

    outcomes: list[Outcome]


class Packet(Shape):
    """A turn as it is kept."""

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


class Packets(BaseModel):
    """Recent turns, newest first."""

    packets: list[Packet]


class Metrics(Shape):
    """Counts of the brain; `coherence` is the mean of that of the turns prepared of late."""

    packets: int
    corrections: int
    overwrites: int
    recalled: int
    pending_embeddings: int
    lessons: int
    tombstones: int
    waiting_clusters: int
    unseen_packets: int
    channels: int
    last_recorded_at: datetime | None
    last_synthesis_at: datetime | None
    coherence: float | None


class Core(Shape):
    """An isolated part of the account's memory."""

    slug: str
    name: str
    is_default: bool
