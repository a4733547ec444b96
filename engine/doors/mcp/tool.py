"""What a tool is: what clients are told of it, what it takes, and what it does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from engine import Engine
    from engine.doors.mcp.arguments import Parameters

    Progress = Callable[[float, str], Awaitable[None]]
    """Told how far a call is: a number that grows, and a sentence."""

    Result = tuple[str, dict[str, Any]]
    """Text for a model, and structured content."""

    Work = Callable[["Call"], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Call:
    """One call: the engine, what was given by its names there, and the client that called."""

    engine: Engine
    given: dict[str, Any]
    progress: Progress
    client: str

    @property
    def actor(self) -> str:
        """Who does what is done by this call, for the audit."""
        return f"mcp {self.client}".rstrip()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. Without `read_only` it changes something: for good where it is `destructive`, and once however
    often it is called where it is `idempotent`.
    """

    name: str
    title: str
    description: str
    parameters: Parameters
    output_schema: Mapping[str, Any]
    work: Work
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
