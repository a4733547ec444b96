"""Ollama: models on this machine or in the house, by its own client. JSON by its `format` schema."""

from __future__ import annotations

import importlib
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from engine.errors import LanguageError, ModelError
from engine.models.language.base import Finish, Role, Tokens, ToolCall
from engine.models.language.calling import (
    LETTERS_A_TOKEN,
    PASSING,
    End,
    Fault,
    NotReached,
    Provider,
    Request,
    estimate,
)
from engine.models.language.waiting import retry_after
from engine.models.ollama_client import START, client, line
from engine.settings import mask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    import httpx
    import ollama

    from engine.models.language.base import Message, Tool

SMALLEST_CONTEXT, LARGEST_CONTEXT = 4096, 32_768
"""Tokens of context that are asked for: Ollama drops the beginning of what is longer without a word."""

SPARE = 1.25
"""Our count of tokens is a guess; too small a context would lose the passages."""


class OllamaLanguage(Provider):
    """A chat model of an Ollama server."""

    provider = "ollama"

    def __init__(self, model: str, silence: float, url: str) -> None:
        super().__init__(model, silence)
        self._url = url
        self._client: ollama.AsyncClient | None = None
        self._wait: float | None = None

    def _load(self) -> None:
        importlib.import_module("ollama")

    async def close(self) -> None:
        """See `LanguageModel.close`."""
        held, self._client = self._client, None
        if held is not None:
            close: Any = held.close  # the library leaves it untyped
            await close()

    def _open(self) -> ollama.AsyncClient:
        if self._client is None:
            try:
                self._client = client(self._url, event_hooks={"response": [self._note_wait]})
            except ModelError as error:
                raise Fault(LanguageError(error.message, remedy=error.remedy)) from error
        return self._client

    async def _note_wait(self, response: httpx.Response) -> None:
        """The library keeps no headers of an error."""
        self._wait = retry_after(response.headers)

    async def _pieces(self, request: Request) -> AsyncGenerator[str | End, None]:
        import httpx
        import ollama

        try:
            answer = await self._open().chat(
                self.model,
                [_turn(each, request.messages) for each in request.messages],
                tools=[_tool(each) for each in request.tools] or None,
                format=cast("Any", request.schema),
                options={"num_predict": request.max_tokens, "num_ctx": _context(request)},
                stream=True,
            )
            parts = cast("AsyncGenerator[ollama.ChatResponse, None]", answer)
            calls: list[ToolCall] = []
            async with aclosing(parts):
                async for part in parts:
                    calls += _calls(part, len(calls))
                    yield part.message.content or ""
                    if part.done:
                        yield End(_tokens(part), _finish(part, calls), tuple(calls))
        except ollama.ResponseError as error:
            raise self._refusal(error) from error
        except (OSError, httpx.RequestError) as error:
            raise self._unreached(error) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # The client takes any JSON for granted, and stumbles over what it did not expect in it.
            raise self._nonsense() from error

    async def _look(self) -> None:
        import httpx
        import ollama

        try:
            await self._open().show(self.model)
        except ollama.ResponseError as error:
            raise self._refusal(error) from error
        except (OSError, httpx.RequestError) as error:
            raise self._unreached(error) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise self._nonsense() from error

    def _nonsense(self) -> Fault:
        return Fault(
            LanguageError(
                f"What answers at {mask(self._url)} does not speak Ollama's protocol.",
                remedy="Set OLLAMA_URL to where Ollama listens, or update it.",
            )
        )

    def _refusal(self, error: ollama.ResponseError) -> Fault:
        reason, status = line(error.error), error.status_code
        words = reason.lower()
        if status == HTTPStatus.NOT_FOUND and "model" in words:
            remedy = f"Pull it: ollama pull {self.model}"
            return Fault(LanguageError(f"Ollama has no model {self.model}.", remedy=remedy))
        if "support tools" in words:
            remedy = "Set AGENT_MODEL to one that does."
            return Fault(LanguageError(f"{self.model} does not call tools.", remedy=remedy))
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            remedy = "Put its user and password into OLLAMA_URL: http://user:password@host:port"
            return Fault(LanguageError(f"Ollama at {mask(self._url)} wants a password.", remedy=remedy))
        told = LanguageError(f"Ollama failed on {self.model}: {reason}.", remedy="Look into its log.")
        # Within a stream an error comes without a status (-1).
        return Fault(told, again=status in PASSING or status < 0, after=self._wait)

    def _unreached(self, error: Exception) -> Fault:
        import httpx

        if isinstance(error, ConnectionError | httpx.ConnectTimeout | httpx.ConnectError):
            told = NotReached(f"Ollama does not answer at {mask(self._url)}.", remedy=START)
            return Fault(told, again=True)
        broke = LanguageError(f"Ollama at {mask(self._url)} broke off: {line(error)}.", remedy="Try again.")
        return Fault(broke, again=True)


def _turn(message: Message, all_of_them: tuple[Message, ...]) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": str(message.role), "content": message.text}
    if message.calls:
        turn["tool_calls"] = [
            {"function": {"name": call.name, "arguments": dict(call.arguments)}} for call in message.calls
        ]
    if message.role is Role.TOOL:
        names = {call.id: call.name for each in all_of_them for call in each.calls}
        turn["tool_name"] = names.get(message.call_id, "")
    return turn


def _tool(tool: Tool) -> Mapping[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def _calls(part: ollama.ChatResponse, before: int) -> list[ToolCall]:
    """Ollama gives calls no ids."""
    found = part.message.tool_calls or ()
    return [
        ToolCall(f"call_{before + number}", each.function.name, dict(each.function.arguments))
        for number, each in enumerate(found, 1)
    ]


def _context(request: Request) -> int:
    tools = sum(len(str(_tool(each))) for each in request.tools) // LETTERS_A_TOKEN
    wanted = int((estimate(request.messages, 0).prompt + tools) * SPARE) + request.max_tokens
    size = SMALLEST_CONTEXT
    while size < min(wanted, LARGEST_CONTEXT):
        size *= 2
    return size


def _tokens(part: ollama.ChatResponse) -> Tokens | None:
    if part.eval_count is None:
        return None
    return Tokens(part.prompt_eval_count or 0, part.eval_count)


def _finish(part: ollama.ChatResponse, calls: list[ToolCall]) -> Finish:
    if calls:
        return Finish.TOOLS
    return Finish.LENGTH if part.done_reason == "length" else Finish.STOP
