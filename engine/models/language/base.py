"""What every language model does: complete a conversation, in one go, piece by piece, or as checked JSON.

Only these values cross the border to a provider's library. Tokens are counted by the provider where it tells,
else estimated and said to be so. What a model writes is hostile text like any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

MOST_TOKENS = 1024
"""Tokens an answer has at most, where the caller does not say."""


class Role(StrEnum):
    """Who says something in a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Tool:
    """Something a model may ask to be done. `schema` is the JSON schema of its arguments, an object."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks to be done. `arguments` are not checked yet; `id` ties the answer to the call."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `calls` are those of an assistant's turn; a tool's turn answers the call of `call_id`."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What was read and written, in the model's own tokens; `estimated` when the provider did not tell."""

    prompt: int = 0
    completion: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Both together, as a budget counts them."""
        return self.prompt + self.completion

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.estimated or other.estimated,
        )


class Finish(StrEnum):
    """Why a model stopped."""

    STOP = "stop"
    LENGTH = "length"
    TOOLS = "tools"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model said, whole."""

    text: str
    tokens: Tokens
    finish: Finish = Finish.STOP
    calls: tuple[ToolCall, ...] = field(default=())


class Meter(Protocol):
    """Hears what a call takes while it goes on, and has a say in whether a model is asked once more."""

    def wrote(self, characters: int) -> None:
        """So much more was written, of an answer that is not whole yet."""

    def paid(self, tokens: Tokens) -> None:
        """An answer is whole, and took so much."""

    async def again(self, messages: Sequence[Message]) -> int:
        """The model is to be asked once more. Returns how many tokens its answer may have.

        Raises:
            BudgetError: none.
        """


class LanguageModel(ABC):
    """One model of one provider. Connects when first asked; `close` ends what is under way."""

    provider: str
    """As LLM_PROVIDER names it."""

    model: str
    """As the provider names it."""

    tools: bool = True
    """Whether it can be given tools."""

    @property
    def name(self) -> str:
        """`provider/model`, for people."""
        return f"{self.provider}/{self.model}"

    @abstractmethod
    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = MOST_TOKENS,
        tools: Sequence[Tool] = (),
        meter: Meter | None = None,
    ) -> Completion:
        """The next turn of a conversation.

        Raises:
            LanguageError: it cannot be had; the sentence says why and what to do.
        """

    @abstractmethod
    async def complete_json(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        *,
        max_tokens: int = MOST_TOKENS,
        meter: Meter | None = None,
    ) -> tuple[Any, Tokens]:
        """The next turn as JSON that the schema holds good, asked again with guidance where it is not.

        Raises:
            OutputError: what came was not valid, also after the last retry.
            LanguageError: it cannot be had.
        """

    @abstractmethod
    def stream(
        self, messages: Sequence[Message], *, max_tokens: int = MOST_TOKENS
    ) -> AsyncGenerator[str | Completion, None]:
        """The next turn piece by piece as it is written, and at last the whole. Close it to cancel.

        Raises:
            LanguageError: it cannot be had, or broke off.
        """

    @abstractmethod
    async def look(self) -> None:
        """See that the model can be had, without a token spent.

        Raises:
            LanguageError: it cannot.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
