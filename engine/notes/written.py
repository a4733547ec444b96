"""The nouns of the writing agent: what it did, step by step, and the note it wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class WriteStep:
    """One thing the agent did, as a sentence for people."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """The note the agent wrote, or with a dry run would have written. `path` is relative to `folder`."""

    folder: Path
    path: str
    text: str
    dry_run: bool
    steps: tuple[WriteStep, ...] = field(default=())
    prompt_tokens: int = 0
    completion_tokens: int = 0
    indexed: bool = False
    """Whether the index has it already."""
