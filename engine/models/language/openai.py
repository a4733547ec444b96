"""OpenAI, xAI's Grok, and every server that speaks OpenAI's Chat Completions, by OpenAI's own SDK.

Not every server knows every parameter. One that is refused by its name is left out from then on: JSON is held
to its schema here in any case, and tokens that nobody counted are estimated.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from engine.errors import LanguageError
from engine.models.language.base import Finish, Role, Tokens, ToolCall
from engine.models.language.calling import End, Fault, Provider, Request
from engine.models.language.sdk import NONSENSE, arguments, broken, fault, nonsense, reason_of, settings_of
from engine.packages import require

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from engine.models.language.base import Message
    from engine.models.language.sdk import Place

URL, GROK_URL = "https://api.openai.com/v1", "https://api.x.ai/v1"
DEFAULT_MODEL, GROK_MODEL = "gpt-5.4-mini", "grok-4"

NO_KEY = "none"
"""A server of one's own wants no key; the SDK wants one."""

LIMITS = ("max_completion_tokens", "max_tokens")
"""The same limit by its new name and by its old one, which OpenAI's models refuse and old servers want."""

OPTIONAL = ("response_format", "stream_options", *LIMITS)
"""What is left out when a server refuses it."""

_UNKNOWN = re.compile(
    r"unsupported|not supported|unknown|unrecogni[sz]ed|unexpected|not permitted|extra", re.IGNORECASE
)
"""How servers say that they do not know a parameter."""

_FINISHES = {
    "length": Finish.LENGTH,
    "tool_calls": Finish.TOOLS,
    "function_call": Finish.TOOLS,
    "content_filter": Finish.REFUSED,
}


class OpenAILanguage(Provider):
    """A model of OpenAI, of xAI, or of a server that speaks as they do."""

    def __init__(self, model: str, silence: float, place: Place, *, provider: str) -> None:
        super().__init__(model, silence)
        self.provider = provider
        self._place = place
        self._without: set[str] = set()
        self._client: Any = None

    def _load(self) -> None:
        require("openai", self.provider)

    async def close(self) -> None:
        """See `LanguageModel.close`."""
        held, self._client = self._client, None
        if held is not None:
            await held.close()

    def _open(self) -> Any:  # noqa: ANN401 - the SDK is an extra
        if self._client is None:
            sdk = require("openai", self.provider)
            made_with = settings_of(sdk, self._place, self._silence)
            self._client = sdk.AsyncOpenAI(api_key=self._place.secret or NO_KEY, **made_with)
            if self._place.url != URL:  # what the environment says of an account there is nobody else's
                self._client.organization = self._client.project = None
        return self._client

    async def _pieces(self, request: Request) -> AsyncGenerator[str | End, None]:
        client, sdk = self._open(), require("openai", self.provider)
        reading = _Reading()
        try:
            answer = await client.chat.completions.create(**self._asked(request), stream=True)
            async with answer:
                async for chunk in answer:
                    yield reading.add(chunk)
            end = reading.end()
        except sdk.APIStatusError as error:
            raise self._unknown_parameter(error) or fault(error, sdk, self._place) from error
        except (sdk.OpenAIError, *broken()) as error:
            raise fault(error, sdk, self._place) from error
        except NONSENSE as error:
            raise nonsense(self._place) from error
        if end is not None:
            yield end

    async def _look(self) -> None:
        client, sdk = self._open(), require("openai", self.provider)
        try:
            known = {each.id async for each in client.models.list()}
        except sdk.NotFoundError:
            return  # not every server lists its models
        except (sdk.OpenAIError, *broken()) as error:
            raise fault(error, sdk, self._place) from error
        except NONSENSE as error:
            raise nonsense(self._place) from error
        if known and self.model not in known:
            remedy = "Set CHAT_MODEL (or AGENT_MODEL) to one that it has."
            raise Fault(LanguageError(f"{self._place.name} has no model {self.model}.", remedy=remedy))

    def _asked(self, request: Request) -> dict[str, Any]:
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [_turn(each) for each in request.messages],
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            asked["tools"] = [_function(each.name, each.description, each.schema) for each in request.tools]
        if request.schema is not None:
            schema = {"name": "answer", "schema": dict(request.schema)}
            asked["response_format"] = {"type": "json_schema", "json_schema": schema}
        limit = next((name for name in LIMITS if name not in self._without), None)
        if limit is not None:
            asked[limit] = request.max_tokens
        return {name: value for name, value in asked.items() if name not in self._without}

    def _unknown_parameter(self, error: Any) -> Fault | None:  # noqa: ANN401
        """A fault that is gone with the next try, which leaves out what this server does not know."""
        if error.status_code not in {400, 422}:
            return None
        reason = reason_of(error)
        if not _UNKNOWN.search(reason):
            return None  # the limit itself may be too large
        refused = next((name for name in OPTIONAL if name in reason and name not in self._without), None)
        if refused is None:
            return None
        self._without.add(refused)
        told = f"{self._place.name} does not know {refused}."
        return Fault(LanguageError(told, remedy="Try again."), again=True)


class _Reading:
    """Takes the chunks of an answer, in which calls come in parts."""

    def __init__(self) -> None:
        self._tokens: Tokens | None = None
        self._finish: Finish | None = None
        self._calls: dict[int, tuple[list[str], list[str], list[str]]] = {}
        self._refused = False

    def add(self, chunk: Any) -> str:  # noqa: ANN401
        """What the chunk says aloud."""
        if chunk.usage is not None:
            self._tokens = Tokens(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
        said = ""
        for choice in chunk.choices or ():
            if choice.finish_reason:
                self._finish = _FINISHES.get(choice.finish_reason, Finish.STOP)
            if choice.delta is not None:
                said += choice.delta.content or getattr(choice.delta, "refusal", None) or ""
                self._refused = self._refused or bool(getattr(choice.delta, "refusal", None))
                for call in choice.delta.tool_calls or ():
                    self._call(call)
        return said

    def _call(self, call: Any) -> None:  # noqa: ANN401
        """Servers tell parts of one call by its index; some give every call the same, or none, and an id."""
        at = call.index if call.index is not None else max(self._calls, default=0)
        if call.id and at in self._calls and self._calls[at][0] not in ([], [call.id]):
            at = next(
                (each for each, known in self._calls.items() if known[0] == [call.id]), len(self._calls)
            )
        ids, names, parts = self._calls.setdefault(at, ([], [], []))
        if call.id and not ids:
            ids.append(call.id)
        if call.function is not None:
            if call.function.name and not names:
                names.append(call.function.name)
            parts.append(call.function.arguments or "")

    def end(self) -> End | None:
        """The end, when it came."""
        if self._finish is None:
            return None
        calls = tuple(
            ToolCall("".join(ids) or f"call_{number}", "".join(names), arguments(parts))
            for number, (ids, names, parts) in sorted(self._calls.items())
        )
        finish = Finish.REFUSED if self._refused else self._finish
        if calls and finish is not Finish.LENGTH:
            finish = Finish.TOOLS
        return End(self._tokens, finish, calls)


def _turn(message: Message) -> dict[str, Any]:
    turn: dict[str, Any] = {"role": str(message.role), "content": message.text}
    if message.calls:
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in message.calls
        ]
    if message.role is Role.TOOL:
        turn["tool_call_id"] = message.call_id
    return turn


def _function(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "description": description, "parameters": dict(schema)}
    return {"type": "function", "function": function}
