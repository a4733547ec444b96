"""One policy for calls to every provider: silence, second tries, and what is not part of an answer.

A provider makes one try, as pieces; everything else is here. A call is always streamed, also where the caller
wants the whole: only so can silence be told from work, and a call that nobody waits for be ended at once.
"""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.errors import LanguageError, OutputError
from engine.models.language import structured
from engine.models.language.base import (
    MOST_TOKENS,
    Completion,
    Finish,
    LanguageModel,
    Message,
    Role,
    Tokens,
    ToolCall,
)
from engine.models.language.thinking import Spoken
from engine.models.ollama_client import line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from engine.models.language.base import Meter, Tool

TRIES = 4
"""Times a call is made that comes to nothing for a reason that may pass."""

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 20.0
"""Seconds between two of them, doubled each time, each between half of it and the whole."""

LONGEST_ASKED = 60.0
"""Seconds a server may ask us to wait (`Retry-After`); for longer nobody waits at a keyboard."""

SECOND_ASKINGS = 2
"""Times a model is told what is wrong with its JSON."""

LOOK_SECONDS = 10.0
"""For a question about the model, which is answered from memory."""

PASSING = frozenset({408, 429, 500, 502, 503, 504, 529})
"""Statuses of HTTP that may be another one soon (529: Anthropic's "overloaded")."""

MOST_COUNTED = 100_000_000
"""Tokens of one call that a count is believed up to."""

LETTERS_A_TOKEN = 4
"""Bytes. Of English; a little too many for other languages and for code. Only where nobody counted."""


ENVIRONMENT = "Check the proxy and the certificates that the environment names (ALL_PROXY, SSL_CERT_FILE)."
"""What to do where a library falls over the environment."""


class Fault(Exception):
    """Why one try came to nothing. `again`: it may pass; `after`: seconds the server asks to wait."""

    def __init__(self, error: LanguageError, *, again: bool = False, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.again = again
        self.after = after


class NotReached(LanguageError):
    """Nobody was there to be asked: nothing was read, and nothing is to be paid."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a provider. With a `schema` the answer shall be JSON that it holds good."""

    messages: tuple[Message, ...]
    max_tokens: int
    tools: tuple[Tool, ...] = ()
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The last of a try. `tokens` None: the provider did not tell."""

    tokens: Tokens | None
    finish: Finish = Finish.STOP
    calls: tuple[ToolCall, ...] = ()


class Provider(LanguageModel):
    """What the files of the providers share. `silence`: seconds without a sign of life."""

    def __init__(self, model: str, silence: float) -> None:
        self.model = model
        self._silence = silence
        self._loaded = False

    @abstractmethod
    def _load(self) -> None:
        """Import the provider's library, which takes a second; in a thread, since no screen shall wait.

        Raises:
            PackageMissing: it is not installed.
        """

    async def _ready(self) -> None:
        if self._loaded:
            return
        try:
            await asyncio.to_thread(self._load)
        except (ImportError, OSError, ValueError) as error:  # a library that looks at the environment at once
            raise LanguageError(f"{self.name} cannot be asked: {line(error)}.", remedy=ENVIRONMENT) from error
        self._loaded = True

    @abstractmethod
    def _pieces(self, request: Request) -> AsyncGenerator[str | End, None]:
        """One try: text as it comes ("" as a sign of life), and at last its end.

        Raises:
            Fault: it came to nothing.
        """

    @abstractmethod
    async def _look(self) -> None:
        """See `LanguageModel.look`.

        Raises:
            Fault: it came to nothing.
        """

    async def look(self) -> None:
        """See `LanguageModel.look`: one try."""
        await self._ready()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._look()
        except TimeoutError:
            raise LanguageError(
                f"{self.name} did not answer within {LOOK_SECONDS:g} s.", remedy="See that its server runs."
            ) from None
        except Fault as fault:
            raise fault.error from fault

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int = MOST_TOKENS,
        tools: Sequence[Tool] = (),
        meter: Meter | None = None,
    ) -> Completion:
        """See `LanguageModel.complete`."""
        return await self._whole(Request(tuple(messages), max_tokens, tuple(tools)), meter)

    async def complete_json(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        *,
        max_tokens: int = MOST_TOKENS,
        meter: Meter | None = None,
    ) -> tuple[Any, Tokens]:
        """See `LanguageModel.complete_json`."""
        request = Request(tuple(messages), max_tokens, schema=schema)
        spent = Tokens()
        for asking in range(1 + SECOND_ASKINGS):
            if asking and meter is not None:
                request = replace(request, max_tokens=await meter.again(request.messages))
            found = await self._whole(request, meter)
            spent += found.tokens
            try:
                return structured.read(found.text, schema), spent
            except ValueError as error:
                fault = str(error)
            if found.finish is Finish.REFUSED:
                raise LanguageError(f"{self.name} refused to answer.", remedy="Ask in other words.")
            if found.finish is Finish.LENGTH:
                fault = f"it was cut off after {request.max_tokens:,} tokens; {fault}"
            said = (Message(Role.ASSISTANT, found.text), Message(Role.USER, structured.guidance(fault)))
            request = replace(request, messages=(*messages, *(said if found.text else said[1:])))
        raise OutputError(
            f"{self.name} gave no valid answer, also when told so: {fault}.",
            remedy="Try again, or set another model.",
        )

    async def stream(
        self, messages: Sequence[Message], *, max_tokens: int = MOST_TOKENS
    ) -> AsyncGenerator[str | Completion, None]:
        """See `LanguageModel.stream`."""
        async with aclosing(self._tries(Request(tuple(messages), max_tokens))) as pieces:
            async for piece in pieces:
                yield piece

    async def _whole(self, request: Request, meter: Meter | None) -> Completion:
        async with aclosing(self._tries(request, shown=False)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Completion):
                    if meter is not None:
                        meter.paid(piece.tokens)
                    return piece
                if meter is not None:
                    meter.wrote(len(piece))
        raise self._broken_off()  # pragma: no cover - the last piece is a completion

    async def _tries(self, request: Request, *, shown: bool = True) -> AsyncGenerator[str | Completion, None]:
        """The pieces of the first try that does not come to nothing. What was `shown` cannot be taken back,
        so there is no second try then.
        """
        await self._ready()
        lost = Tokens()
        for tried in range(1, TRIES + 1):
            written = 0
            try:
                async with aclosing(self._try(request)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, Completion):
                            yield replace(piece, tokens=piece.tokens + lost)
                        else:
                            written += len(piece)
                            yield piece
            except Fault as fault:
                pause = _pause(tried, fault)
                if pause is None or (written and shown):
                    raise fault.error from fault
                if written:  # it was worked on, and is paid for
                    lost += estimate(request.messages, written)
            else:
                return
            await asyncio.sleep(pause)

    async def _try(self, request: Request) -> AsyncGenerator[str | Completion, None]:
        spoken, end = Spoken(), None
        async with aclosing(self._pieces(request)) as pieces:
            while end is None:
                try:
                    async with asyncio.timeout(self._silence):
                        piece = await anext(pieces, None)
                except TimeoutError:
                    raise Fault(self._silent()) from None
                if piece is None:
                    raise Fault(self._broken_off())
                if isinstance(piece, End):
                    end = piece
                elif text := spoken.add(piece):
                    yield text
        if text := spoken.rest():
            yield text
        tokens = _believed(end.tokens) or estimate(request.messages, spoken.heard)
        yield Completion(spoken.text.strip(), tokens, end.finish, end.calls)

    def _silent(self) -> LanguageError:
        return LanguageError(
            f"{self.name} was silent for {self._silence:g} s.",
            remedy="A larger LLM_TIMEOUT, in seconds, gives it more time.",
        )

    def _broken_off(self) -> LanguageError:
        return LanguageError(f"{self.name} broke off in the middle.", remedy="Try again.")


def estimate(messages: Sequence[Message], written: int) -> Tokens:
    """Tokens by the length of the texts: of what was asked, and `written` characters.

    By bytes: a letter of Chinese has three, and about three quarters of a token.
    """
    read = sum(_length(each) for each in messages)
    return Tokens(-(-read // LETTERS_A_TOKEN), -(-written // LETTERS_A_TOKEN), estimated=True)


def _length(message: Message) -> int:
    called = sum(len(str(dict(call.arguments))) + len(call.name) for call in message.calls)
    return len(message.text.encode("utf-8", "replace")) + called


def _believed(tokens: Tokens | None) -> Tokens | None:
    """Counts that can be, as told; whatever else a server says is none."""
    if tokens is None:
        return None
    counts = (tokens.prompt, tokens.completion)
    whole = all(isinstance(each, int) and 0 <= each <= MOST_COUNTED for each in counts)
    return tokens if whole and any(counts) else None


def _pause(tried: int, fault: Fault) -> float | None:
    """Seconds until the next try; None when there is none."""
    if not fault.again or tried >= TRIES:
        return None
    longest: float = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** (tried - 1))
    own = longest * random.uniform(0.5, 1)  # noqa: S311 - no secret
    if fault.after is None:
        return own
    return max(own, fault.after) if fault.after <= LONGEST_ASKED else None
