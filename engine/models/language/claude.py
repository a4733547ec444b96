"""Claude, by Anthropic's own SDK and its Messages API. JSON is the input of a tool that it has to call."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from engine.models.language.base import Finish, Role, Tokens, ToolCall
from engine.models.language.calling import End, Provider, Request
from engine.models.language.sdk import NONSENSE, Place, arguments, broken, fault, nonsense, settings_of
from engine.packages import require

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from engine.models.language.base import Message

URL = "https://api.anthropic.com"
DEFAULT_MODEL = "claude-sonnet-5"

ANSWER = "answer"
"""The tool whose input is the JSON that was asked for."""

_FINISHES = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "tool_use": Finish.TOOLS,
    "refusal": Finish.REFUSED,
}


class ClaudeLanguage(Provider):
    """One of Anthropic's models."""

    provider = "claude"

    def __init__(self, model: str, silence: float, *, key: str, url: str | None = None) -> None:
        super().__init__(model, silence)
        place = url or URL
        self._place = Place("Claude", model, place, key, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
        self._client: Any = None

    def _load(self) -> None:
        require("anthropic", "claude")

    async def close(self) -> None:
        """See `LanguageModel.close`."""
        held, self._client = self._client, None
        if held is not None:
            await held.close()

    def _open(self) -> Any:  # noqa: ANN401 - the SDK is an extra
        if self._client is None:
            sdk = require("anthropic", "claude")
            made_with = settings_of(sdk, self._place, self._silence)
            self._client = sdk.AsyncAnthropic(api_key=self._place.secret, **made_with)
        return self._client

    async def _pieces(self, request: Request) -> AsyncGenerator[str | End, None]:
        client, sdk = self._open(), require("anthropic", "claude")
        try:
            answer = await client.messages.create(**self._asked(request), stream=True)
            async with aclosing(_read(answer, as_json=request.schema is not None)) as pieces:
                async for piece in pieces:
                    yield piece
        except (sdk.AnthropicError, *broken()) as error:
            raise fault(error, sdk, self._place) from error
        except NONSENSE as error:
            raise nonsense(self._place) from error

    async def _look(self) -> None:
        client, sdk = self._open(), require("anthropic", "claude")
        try:
            found = await client.models.retrieve(self.model)
            if not found.id:
                raise nonsense(self._place)
        except (sdk.AnthropicError, *broken()) as error:
            raise fault(error, sdk, self._place) from error
        except NONSENSE as error:
            raise nonsense(self._place) from error

    def _asked(self, request: Request) -> dict[str, Any]:
        told = "\n\n".join(each.text for each in request.messages if each.role is Role.SYSTEM)
        tools = [_tool(each.name, each.description, dict(each.schema)) for each in request.tools]
        asked: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "messages": _turns(request.messages),
        }
        if request.schema is not None:
            tools = [_tool(ANSWER, "Give the answer.", dict(request.schema))]
            asked["tool_choice"] = {"type": "tool", "name": ANSWER}
        if told:
            asked["system"] = told
        if tools:
            asked["tools"] = tools
        return asked


def _tool(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": schema}


def _turns(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """The turns but the system's; what several tools answer to one turn belongs into one."""
    turns: list[dict[str, Any]] = []
    for each in messages:
        if each.role is Role.SYSTEM:
            continue
        role = "assistant" if each.role is Role.ASSISTANT else "user"
        blocks = _blocks(each)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role is Role.TOOL:
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}]
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in message.calls
    ]
    return [{"type": "text", "text": message.text}, *calls] if message.text.strip() else calls


async def _read(answer: Any, *, as_json: bool) -> AsyncGenerator[str | End, None]:  # noqa: ANN401
    read = written = 0
    finish: Finish | None = None
    calls: dict[int, tuple[str, str, list[str]]] = {}
    async with answer:
        async for event in answer:
            spoken = ""
            if event.type == "message_start":
                read = event.message.usage.input_tokens or 0
            elif event.type == "content_block_start" and event.content_block.type == "tool_use":
                calls[event.index] = (event.content_block.id, event.content_block.name, [])
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                spoken = "" if as_json else _text(event.delta.text)
            elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                calls[event.index][2].append(event.delta.partial_json)
                spoken = event.delta.partial_json if as_json else ""
            elif event.type == "message_delta":
                written = event.usage.output_tokens or written
                finish = _FINISHES.get(event.delta.stop_reason or "", Finish.STOP)
            yield spoken
    if finish is not None:  # else it broke off
        asked = (
            ()
            if as_json
            else tuple(ToolCall(id_, name, arguments(parts)) for id_, name, parts in calls.values())
        )
        finish = Finish.STOP if as_json and finish is Finish.TOOLS else finish
        yield End(Tokens(read, written) if read else None, finish, asked)


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError("a text is expected")
    return said
