"""A server that speaks the protocols of Ollama, Anthropic and OpenAI over real sockets and says what a test tells it.

    async with ScriptedLLM() as server:
        server.reply("Owls hunt at ", "night [1].")      # one reply a request, in order; pieces as given
        server.reply(status=429, headers={"retry-after": "0"})
        settings = replace(settings, **server.settings("ollama"))

Each request is kept in `server.asked`. A reply with `hold_after=n` waits after n pieces for `server.gate`, and
`server.hung_up` is set when the client leaves meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROVIDERS = ("ollama", "claude", "openai", "grok")
MODEL = "scripted:1b"
KEY = "sk-scripted-secret-0123456789"


@dataclass
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def said(self) -> str:
        """All texts of the conversation, one after another."""
        return "\n".join(_text(message.get("content")) for message in self.body["messages"])

    @property
    def system(self) -> str:
        """What stood in the system's role."""
        own = self.body.get("system", "")
        turns = [m.get("content") or "" for m in self.body["messages"] if m["role"] == "system"]
        return "\n".join([own, *turns]).strip()


@dataclass
class Reply:
    """What is answered to one request. `calls` are (name, arguments); text arguments go out as they are."""

    pieces: Sequence[str] = ()
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = ()
    finish: str = "stop"
    tokens: tuple[int, int] | None = (7, 3)
    thinking: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: str = "it would not"
    raw: bytes | None = None
    hold_after: int | None = None
    cut_after: int | None = None


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", block.get("content", ""))) for block in content or ())


class ScriptedLLM:
    """Use as an async context manager."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.replies: deque[Reply] = deque()
        self.always: Reply | None = None
        """What is said when nothing is scripted any more; None: a status 500 that fails the test."""
        self.gate = asyncio.Event()
        self.held = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.without: set[str] = set()
        """Parameters this server does not know: it refuses them by name."""
        self.port = 0
        self._clients: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        self._server.close()
        for _ in range(3):  # who has just come in is served: one that never began would leave its socket open
            await asyncio.sleep(0)
        while self._clients:
            for task in tuple(self._clients):
                task.cancel()
            await asyncio.gather(*self._clients, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def reply(self, *pieces: str, **more: Any) -> None:
        """Script the next reply."""
        self.replies.append(Reply(pieces, **more))

    def settings(self, provider: str) -> dict[str, Any]:
        """The settings that have the engine ask this server, as fields of `Settings`."""
        own = {
            "ollama": {"ollama_url": self.url},
            "claude": {"anthropic_base_url": self.url, "anthropic_api_key": KEY},
            "openai": {"openai_base_url": f"{self.url}/v1", "openai_api_key": KEY},
            "grok": {"xai_base_url": f"{self.url}/v1", "xai_api_key": KEY},
        }
        return {"llm_provider": provider, "chat_model": MODEL, **own[provider]}

    def environment(self, provider: str) -> dict[str, str]:
        """The same as variables, for a process."""
        return {name.upper(): value for name, value in self.settings(provider).items()}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._clients.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length") or 0)) or b"{}")
        method, path, _ = first.split(" ")
        if method == "GET" or path == "/api/show":
            return await _send(writer, 200, {}, json.dumps(self._card(path)).encode())
        self.asked.append(Asked(path, headers, body))
        refused = next((name for name in self.without if name in body), None)
        if refused:
            error = {"error": {"message": f"Unsupported parameter: {refused}"}}
            return await _send(writer, 400, {}, json.dumps(error).encode())
        reply = self.replies.popleft() if self.replies else self.always
        if reply is None:
            reply = Reply(status=500, error="nothing is scripted")
        if reply.raw is not None or reply.status != 200:
            data = reply.raw if reply.raw is not None else _refusal(path, reply)
            return await _send(writer, reply.status, reply.headers, data)
        return await self._stream(reader, writer, path, reply, body)

    async def _stream(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        path: str,
        reply: Reply,
        body: dict[str, Any],
    ) -> bool:
        kind = "application/x-ndjson" if path == "/api/chat" else "text/event-stream"
        writer.write(
            f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
        )
        events = {"/api/chat": _ollama, "/v1/messages": _anthropic}.get(path, _openai)(reply, body)
        told = -1
        for is_piece, event in events:
            told += is_piece
            if reply.cut_after is not None and told >= reply.cut_after:
                return False
            if reply.hold_after is not None and told >= reply.hold_after and not self.gate.is_set():
                await writer.drain()
                self.held.set()
                if await self._left(reader):
                    return False
            data = event.encode()
            writer.write(b"%x\r\n" % len(data) + data + b"\r\n")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _left(self, reader: asyncio.StreamReader) -> bool:
        """Wait for the gate; whether the client left before it opened."""
        leaving, opening = asyncio.ensure_future(reader.read(1)), asyncio.ensure_future(self.gate.wait())
        await asyncio.wait({leaving, opening}, return_when=asyncio.FIRST_COMPLETED)
        opening.cancel()
        if leaving.done():
            self.hung_up.set()
            return True
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving
        return False

    def _card(self, path: str) -> dict[str, Any]:
        if path == "/api/version":
            return {"version": "0.0.0"}
        if path == "/api/show":
            return {"details": {}, "model_info": {}, "capabilities": ["completion", "tools"]}
        if path == "/api/tags":
            return {"models": [{"name": MODEL, "model": MODEL, "size": 1}]}
        model = {"id": MODEL, "object": "model", "type": "model", "created": 0, "owned_by": "tests"}
        model |= {"created_at": "2026-01-01T00:00:00Z", "display_name": MODEL}
        if path.startswith("/v1/models/"):
            return model
        return {"object": "list", "data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL}


async def _send(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], data: bytes) -> bool:
    lines = [f"HTTP/1.1 {status} Scripted", f"content-length: {len(data)}", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    await writer.drain()
    return True


def _refusal(path: str, reply: Reply) -> bytes:
    if path == "/api/chat":
        return json.dumps({"error": reply.error}).encode()
    return json.dumps({"type": "error", "error": {"type": "scripted", "message": reply.error}}).encode()


Events = "Iterator[tuple[bool, str]]"


def _arguments(given: Mapping[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _ollama(reply: Reply, body: dict[str, Any]) -> Events:
    def line(message: dict[str, Any], **more: Any) -> str:
        part = {"model": MODEL, "created_at": "2026-01-01T00:00:00Z", "done": False}
        return json.dumps(part | {"message": {"role": "assistant", **message}} | more) + "\n"

    if reply.thinking:
        yield True, line({"content": "", "thinking": reply.thinking})
    for piece in reply.pieces:
        yield True, line({"content": piece})
    if reply.calls:
        calls = [{"function": {"name": name, "arguments": given}} for name, given in reply.calls]
        yield True, line({"content": "", "tool_calls": calls})
    counts = (
        {} if reply.tokens is None else {"prompt_eval_count": reply.tokens[0], "eval_count": reply.tokens[1]}
    )
    reason = "length" if reply.finish == "length" else "stop"
    yield True, line({"content": ""}, done=True, done_reason=reason, **counts)


def _anthropic(reply: Reply, body: dict[str, Any]) -> Events:
    def event(kind: str, **more: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind} | more)}\n\n"

    read, written = reply.tokens or (0, 0)
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    usage = {"input_tokens": read, "output_tokens": 1}
    yield False, event("message_start", message=message | {"stop_reason": None, "usage": usage})
    blocks: list[tuple[dict[str, Any], str, Sequence[str]]] = []
    if reply.thinking:
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, "thinking", [reply.thinking]))
    if body.get("tool_choice"):
        block = {"type": "tool_use", "id": "toolu_1", "name": body["tool_choice"]["name"], "input": {}}
        blocks.append((block, "json", reply.pieces))
    elif reply.pieces:
        blocks.append(({"type": "text", "text": ""}, "text", reply.pieces))
    for number, (name, given) in enumerate(reply.calls):
        whole = _arguments(given)
        parts = [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
        blocks.append(
            ({"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}, "json", parts)
        )
    deltas = {"text": ("text_delta", "text"), "json": ("input_json_delta", "partial_json")}
    deltas["thinking"] = ("thinking_delta", "thinking")
    for index, (block, kind, parts) in enumerate(blocks):
        yield False, event("content_block_start", index=index, content_block=block)
        for part in parts:
            delta = {"type": deltas[kind][0], deltas[kind][1]: part}
            yield True, event("content_block_delta", index=index, delta=delta)
        yield False, event("content_block_stop", index=index)
    reasons = {"stop": "end_turn", "length": "max_tokens", "tools": "tool_use", "refused": "refusal"}
    reason = "tool_use" if reply.calls else reasons[reply.finish]
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield True, event("message_delta", delta=delta, usage={"output_tokens": written})
    yield False, event("message_stop")


def _openai(reply: Reply, body: dict[str, Any]) -> Events:
    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        part = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return f"data: {json.dumps(part | {'choices': [choice]} | more)}\n\n"

    yield False, chunk({"role": "assistant", "content": ""})
    if reply.thinking:
        yield True, chunk({"content": None, "reasoning_content": reply.thinking})
    for piece in reply.pieces:
        yield True, chunk({"content": piece})
    for number, (name, given) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        call = {"index": number, "id": f"call_{number}", "type": "function", "function": function}
        yield False, chunk({"tool_calls": [call]})
        whole = _arguments(given)
        for part in (whole[: len(whole) // 2], whole[len(whole) // 2 :]):
            yield True, chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]})
    reasons = {"stop": "stop", "length": "length", "tools": "tool_calls", "refused": "content_filter"}
    yield True, chunk({}, "tool_calls" if reply.calls else reasons[reply.finish])
    if reply.tokens is not None:
        read, written = reply.tokens
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        yield False, chunk({}, choices=[], usage=usage)
    yield False, "data: [DONE]\n\n"
