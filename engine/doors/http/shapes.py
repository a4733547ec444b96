"""The shapes of requests and answers: knowman's names first, then ours. They make the OpenAPI document."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - pydantic reads it
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from engine.notes.model import MOST_CITATIONS
from engine.text.tokens import MAX_QUERY

MOST_ROWS = 200
LONGEST_PATH = 4096

Query = Annotated[str, Field(min_length=1, max_length=MAX_QUERY, description="What is looked for.")]


def whole(value: object) -> object:
    """A whole number as JSON has it: 3 and 3.0, and neither true nor "3"."""
    if isinstance(value, bool | str):
        raise PydanticCustomError("int_type", "Input should be a valid integer")
    return value


Count = Annotated[
    int, Field(ge=1, le=MOST_CITATIONS, description="Citations at most."), BeforeValidator(whole)
]


class Question(BaseModel):
    """What is asked of the notes."""

    q: Query
    k: Count | None = None


class IndexPath(BaseModel):
    """What is to be indexed."""

    path: Annotated[str, Field(min_length=1, max_length=LONGEST_PATH)] | None = Field(
        None, description="A note, or a folder in the folders of notes; all of them where it is left out."
    )


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str
    id: str | None = Field(None, description="Of a fault of the server: its log tells the rest by it.")


class Health(BaseModel):
    """The process lives; of the database it tells nothing."""

    status: Literal["ok"]
    embeddings_provider: str


class Citation(BaseModel):
    """A passage and the lines it stands on."""

    path: str
    line_start: int
    line_end: int
    text: str
    distance: float | None = Field(description="Cosine distance to the query; null where none is known.")
    score: float
    heading: list[str]
    folder: str
    copies: int
    freshness: str = Field(description="`same`, `moved to L9-L12`, `changed` or `gone`: as on the disk now.")


class Found(BaseModel):
    """What a search found, best first."""

    citations: list[Citation]
    notes: list[str] = Field(description="Sentences on what limits the search.")


class Answered(Found):
    """What an ask came to."""

    answer: str | None = Field(description="Null without evidence, and where no language model answered.")
    outcome: Literal["no_evidence", "citations", "answer"]
    unsupported: list[str] = Field(description="Sentences on what in the answer points to no source.")
    trouble: str | None = Field(description="Why a language model that was asked did not answer.")


class Evaluated(BaseModel):
    """A run over the labelled questions."""

    groundedness: float
    total: int
    correct: int
    answered_count: int | None = Field(description="Always null: a run asks no language model.")
    delta: float | None
    failing: list[str]
    recall: float | None
    mrr: float | None
    dataset: str
    model: str
    k: int


class Run(BaseModel):
    """A stored run."""

    id: int
    created_at: datetime
    groundedness: float
    total: int
    correct: int
    answered_count: int | None
    recall: float | None
    mrr: float | None
    dataset: str
    model: str
    k: int


class Runs(BaseModel):
    """Stored runs, newest first."""

    runs: list[Run]


class IndexJob(BaseModel):
    """An indexing that was begun."""

    job_id: int


class IndexState(BaseModel):
    """How far it is."""

    id: int
    status: Literal["pending", "processing", "done", "failed"]
    error: str | None


class Jobs(BaseModel):
    """The queue."""

    pending: int
    processing: int
    failed: int
    done: int
    rate: float = Field(description="Jobs a second in the last minute.")


class Drift(BaseModel):
    """Paths on which index and disk differ, by cause."""

    not_indexed: int
    orphaned: int
    changed: int
    other_model: int
    job_failed: int
    at: datetime = Field(description="When the folders were looked through.")
    folders_away: int = Field(description="Folders that cannot be seen now; their notes are kept.")


class Vectors(BaseModel):
    """Passages by whether they have a vector of the model in use."""

    embedded: int
    pending: int
    failed: int


class Watcher(BaseModel):
    """Who watches a folder, and how."""

    folder: str
    mode: str
    beat: datetime | None
    watched: bool = Field(description="Whether its watcher gave a sign of life lately.")


class Status(BaseModel):
    """The index, the disk and the queue."""

    files_on_disk: int
    files_indexed: int
    chunks: int
    embeddings_model: str
    jobs: Jobs
    drift: Drift
    vectors: Vectors | None
    watchers: list[Watcher]
    services_down: list[str]


class File(BaseModel):
    """A note on the disk, in the index, or both."""

    path: str
    chunks: int
    indexed: bool
    on_disk: bool
    folder: str


class Job(BaseModel):
    """A job of the queue. `type` is `ingest_path` or `delete_path`."""

    id: int
    type: str
    status: Literal["pending", "processing", "done", "failed"]
    updated_at: datetime
    error: str | None
    path: str


class Trace(BaseModel):
    """A search or an ask that was made."""

    id: int
    created_at: datetime
    query: str
    citation_count: int
    answered: bool
    latency_ms: float
    kind: Literal["search", "ask"]
    door: str
