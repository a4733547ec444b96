"""Servers that speak a provider's protocol badly: each fault is one sentence, each oddity is read for what it means."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from engine.errors import LanguageError
from engine.models.language.base import Finish, Tokens
from tests.asking import complete
from tests.scripted_llm import PROVIDERS, Reply, ScriptedLLM

pytestmark = pytest.mark.usefixtures("quick")

DEEP = b"[" * 200_000


def sse(*events: dict[str, Any]) -> bytes:
    """Events of a stream; those of Anthropic have a name."""
    named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    return "".join(
        f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(named, events, strict=True)
    ).encode()


def claude(*blocks: dict[str, Any], usage: Any = None, stop: str = "end_turn") -> bytes:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    told = {"input_tokens": 1, "output_tokens": 1} if usage is None else usage
    return sse(
        {"type": "message_start", "message": message | {"stop_reason": None, "usage": told}},
        *blocks,
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": 1},
        },
        {"type": "message_stop"},
    )


def text_block(text: Any) -> tuple[dict[str, Any], ...]:
    return (
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
    )


def json_delta(index: int) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": "{}"}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "1",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "m",
        "choices": [choice],
    } | more


def call(arguments: Any, *, finish: str = "tool_calls", **more: Any) -> bytes:
    given = {"index": 0, "id": "call_1", "function": {"name": "search", "arguments": arguments}} | more
    return sse(chunk({"tool_calls": [given]}), chunk({}, finish))


def line(content: Any, **more: Any) -> bytes:
    part = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
    return json.dumps(part | {"message": {"role": "assistant", "content": content}} | more).encode() + b"\n"


NOT_THE_PROTOCOL = [
    ("ollama", line(7) + line("", done=True)),
    ("ollama", line("Owls") + b"nonsense\n"),
    ("openai", sse(chunk({"content": 7}), chunk({}, "stop"))),
    ("openai", sse(chunk({"content": [{"type": "text", "text": "Owls"}]}), chunk({}, "stop"))),
    ("claude", claude(*text_block("Owls"), stop=["end"])),  # type: ignore[arg-type]
    pytest.param(
        "claude",
        claude(*text_block(7)),
    ),
    pytest.param("claude", claude(json_delta(3))),
    pytest.param(
        "openai",
        call("{}", id=7),
    ),
    pytest.param("openai", call({"query": "owls"})),
    *(
        pytest.param(provider, b"data: " * (provider != "ollama") + DEEP + b"\n\n")
        for provider in PROVIDERS
        if provider != "claude"
    ),
    pytest.param(
        "claude",
        b"event: message_start\ndata: " + DEEP + b"\n\n",
    ),
]


@pytest.mark.parametrize(("provider", "raw"), NOT_THE_PROTOCOL)
async def test_what_is_not_the_protocol_is_one_sentence(llm: ScriptedLLM, provider: str, raw: bytes) -> None:
    llm.always = Reply(raw=raw)
    with pytest.raises(LanguageError) as caught:
        await complete(llm, provider)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "provider",
    ["ollama", "openai", "grok", pytest.param("claude")],
)
async def test_a_body_that_cannot_be_unpacked_is_one_sentence(llm: ScriptedLLM, provider: str) -> None:
    llm.always = Reply(raw=b"no gzip", headers={"content-encoding": "gzip"})
    with pytest.raises(LanguageError):
        await complete(llm, provider)


@pytest.mark.parametrize(
    ("provider", "raw"),
    [
        (
            "openai",
            sse(chunk({"content": "At night."}), chunk({}, "stop") | {"choices": None}, chunk({}, "stop")),
        ),
        ("openai", sse(chunk({"content": None}), chunk({"content": "At night."}), chunk({}, "stop"))),
        ("openai", sse(chunk({"content": "At night."}), chunk({}, "stop"), chunk({}) | {"choices": []})),
        ("ollama", line("At night.", done=True)),
        ("claude", claude({"type": "of next year"}, *text_block("At night."))),
    ],
)
async def test_oddities_that_change_nothing_are_passed_over(
    llm: ScriptedLLM, provider: str, raw: bytes
) -> None:
    llm.always = Reply(raw=raw)
    assert (await complete(llm, provider)).text == "At night."


@pytest.mark.parametrize(
    ("provider", "raw"),
    [
        ("openai", sse({"error": {"message": "overloaded with owls"}})),
        pytest.param(
            "claude",
            sse({"type": "error", "error": {"type": "overloaded_error", "message": "overloaded with owls"}}),
        ),
        pytest.param(
            "ollama",
            json.dumps({"error": "overloaded with owls"}).encode() + b"\n",
        ),
    ],
)
async def test_an_error_within_the_stream_may_pass_too(llm: ScriptedLLM, provider: str, raw: bytes) -> None:
    llm.reply(raw=raw)
    llm.reply("At night.")
    assert (await complete(llm, provider)).text == "At night."


@pytest.mark.parametrize(
    ("provider", "raw"),
    [
        pytest.param("ollama", line("Owls", done=True, prompt_eval_count=-5, eval_count=1)),
        pytest.param("ollama", line("Owls", done=True, prompt_eval_count=10**30, eval_count=1)),
        pytest.param(
            "openai",
            sse(
                chunk({"content": "Owls"}),
                chunk({}, "stop", usage={"prompt_tokens": "12", "completion_tokens": 1}),
            ),
        ),
        pytest.param(
            "openai",
            sse(chunk({"content": "Owls"}), chunk({}, "stop", usage={})),
        ),
        pytest.param("claude", claude(*text_block("Owls"), usage={"input_tokens": "12"})),
        pytest.param(
            "claude",
            claude(*text_block("Owls"), usage={}),
        ),
    ],
)
async def test_tokens_that_cannot_be_are_estimated(llm: ScriptedLLM, provider: str, raw: bytes) -> None:
    llm.always = Reply(raw=raw)
    found = await complete(llm, provider)
    assert found.tokens == Tokens(5, 1, estimated=True)


@pytest.mark.parametrize("index", [{}, {"index": 0}])
async def test_calls_that_a_server_does_not_number_are_told_apart(
    llm: ScriptedLLM, index: dict[str, int]
) -> None:
    """Seen of Gemini's and of other servers that speak as OpenAI does."""
    calls = [
        {"id": f"call_{word}", "function": {"name": "search", "arguments": json.dumps({"query": word})}}
        | index
        for word in ("owls", "bats")
    ]
    llm.always = Reply(raw=sse(*(chunk({"tool_calls": [each]}) for each in calls), chunk({}, "tool_calls")))
    found = await complete(llm, "openai")
    assert [(each.name, each.arguments) for each in found.calls] == [
        ("search", {"query": "owls"}),
        ("search", {"query": "bats"}),
    ]


async def test_a_name_that_every_part_repeats_is_one_name(llm: ScriptedLLM) -> None:
    parts = [
        {"index": 0, "id": "call_1", "function": {"name": "search", "arguments": text}}
        for text in ('{"query": ', '"owls"}')
    ]
    llm.always = Reply(raw=sse(*(chunk({"tool_calls": [each]}) for each in parts), chunk({}, "tool_calls")))
    (found,) = (await complete(llm, "openai")).calls
    assert (found.id, found.name, found.arguments) == ("call_1", "search", {"query": "owls"})


@pytest.mark.parametrize("provider", ["claude", pytest.param("openai")])
async def test_a_call_that_was_cut_off_is_told_as_cut_off(llm: ScriptedLLM, provider: str) -> None:
    cut = {"index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "search", "input": {}}}
    raws = {
        "claude": claude({"type": "content_block_start"} | cut, stop="max_tokens"),
        "openai": call('{"query": "ow', finish="length"),
    }
    llm.always = Reply(raw=raws[provider])
    assert (await complete(llm, provider)).finish is Finish.LENGTH


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_server_that_never_answers_is_asked_once_and_left(provider: str) -> None:
    """Silence before the first byte, where no header came yet."""
    came: list[None] = []
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(None)
        await reader.readuntil(b"\r\n\r\n")
        while await reader.read(2**16):
            pass
        left.set()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    held = ScriptedLLM()
    held.port = listening.sockets[0].getsockname()[1]
    async with listening:
        with pytest.raises(LanguageError, match=r"was silent for 0.2 s.*LLM_TIMEOUT"):
            await complete(held, provider, llm_timeout=0.2)
        async with asyncio.timeout(5):
            await left.wait()
    assert len(came) == 1
