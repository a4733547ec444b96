"""What is around a call: secrets, the environment, limits, and JSON out of a model that runs wild."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from engine.errors import LanguageError, OutputError
from engine.models.language import structured
from engine.models.language.base import Message, Role, ToolCall
from tests.asking import QUESTION, SDKS, complete, opened
from tests.scripted_llm import KEY, Reply, ScriptedLLM

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize("provider", SDKS)
async def test_a_key_at_the_cut_of_a_long_reason_is_no_part_of_it(llm: ScriptedLLM, provider: str) -> None:
    llm.always = Reply(status=400, error="x" * (300 - len(KEY) + 1) + KEY)
    with pytest.raises(LanguageError) as caught:
        await complete(llm, provider)
    assert KEY[:-1] not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "setting"),
    [
        ("ollama", "ollama_url"),
        *(
            pytest.param(provider, setting)
            for provider, setting in zip(
                SDKS, ("anthropic_base_url", "openai_base_url", "xai_base_url"), strict=True
            )
        ),
    ],
)
async def test_a_password_of_the_address_is_in_no_error(provider: str, setting: str) -> None:
    async with ScriptedLLM() as gone:
        pass
    url = f"http://owl:hunter2@127.0.0.1:{gone.port}/v1"
    with pytest.raises(LanguageError) as caught:
        await complete(gone, provider, **{setting: url})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("provider", ["openai", "grok"])
async def test_what_the_environment_tells_openai_is_not_told_to_others(
    llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-private")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-private")
    llm.reply("At night.")
    await complete(llm, provider)
    assert "private" not in str(llm.asked[0].headers)


@pytest.mark.parametrize(
    "provider",
    [
        "ollama",
        *(pytest.param(each) for each in SDKS),
    ],
)
async def test_a_proxy_is_not_for_this_machine(
    llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    llm.reply("At night.")
    assert (await complete(llm, provider)).text == "At night."


MAKING = """
import asyncio, sys
from engine.errors import NoctuaryError
from engine.models.language.base import Message, Role
from engine.models.language.opening import open_language
from engine.settings import Settings

async def ask(provider):
    own = {"ollama": {"ollama_url": "http://127.0.0.1:9"}, "claude": {"anthropic_base_url": "http://127.0.0.1:9"}}
    try:
        await open_language(Settings(llm_provider=provider, anthropic_api_key="k", openai_api_key="k",
            openai_base_url="http://127.0.0.1:9", **own.get(provider, {}))).complete([Message(Role.USER, "?")])
    except NoctuaryError:
        print("told")

asyncio.run(ask(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("name", "value"), [("ALL_PROXY", "socks5://127.0.0.1:9"), ("SSL_CERT_FILE", "/nowhere/at-all.pem")]
)
@pytest.mark.parametrize(
    "provider",
    [
        pytest.param("ollama"),
        *(pytest.param(each) for each in SDKS[:2]),
    ],
)
def test_a_client_that_cannot_be_made_is_one_sentence(provider: str, name: str, value: str) -> None:
    """In a process: an SDK's half-made client complains to whoever runs when it is swept up."""
    command = [sys.executable, "-c", MAKING, provider]
    done = subprocess.run(
        command, env=os.environ | {name: value}, capture_output=True, text=True, check=False
    )
    assert done.stdout == "told\n"


@pytest.mark.parametrize(
    "body", [b"<html>a page</html>", b"[]", b"7", b""], ids=["page", "list", "number", "nothing"]
)
@pytest.mark.parametrize(
    "provider",
    ["ollama", *(pytest.param(each) for each in SDKS)],
)
async def test_looking_at_what_is_no_server_of_models_is_one_sentence(provider: str, body: bytes) -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        kind = b"text/html" if body.startswith(b"<") else b"application/json"
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\n" % kind)
        writer.write(b"content-length: %d\r\nconnection: close\r\n\r\n%s" % (len(body), body))
        writer.close()
        await writer.wait_closed()

    listening = await asyncio.start_server(page, "127.0.0.1", 0)
    held = ScriptedLLM()
    held.port = listening.sockets[0].getsockname()[1]
    async with listening, opened(held, provider) as model:
        with pytest.raises(LanguageError):
            await model.look()


async def test_a_limit_that_is_too_large_is_no_limit_that_is_not_known(llm: ScriptedLLM) -> None:
    """As vLLM words it when the context is too small."""
    told = "'max_tokens' or 'max_completion_tokens' is too large: 1024. The model's context is 512 tokens"
    llm.reply(status=400, error=told)
    llm.always = Reply(("At night.",))
    async with opened(llm, "openai") as model:
        with pytest.raises(LanguageError, match="too large"):
            await model.complete(QUESTION)
        await model.complete(QUESTION, max_tokens=99)
    assert llm.asked[-1].body.get("max_completion_tokens") == 99


def test_a_number_without_an_end_is_no_json() -> None:
    with pytest.raises(ValueError, match="no JSON"):
        structured.read('{"share": 1e999}', {"type": "object"})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("`" * 800 + "\n" + "\n" * 800, id="fences"),
        pytest.param('{"titles": [' + "\n" * 8000, id="lines"),
    ],
)
def test_a_model_that_runs_wild_does_not_stop_the_screen(text: str) -> None:
    """White space without end is what models under a grammar fall into."""
    began = time.process_time()
    with pytest.raises(ValueError, match="not JSON"):
        structured.read(text, {"type": "object"})
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize("provider", SDKS)
async def test_a_refusal_is_not_argued_with(llm: ScriptedLLM, provider: str) -> None:
    llm.always = Reply(("I will not.",), finish="refused")
    async with opened(llm, provider) as model:
        with pytest.raises(LanguageError) as caught:
            await model.complete_json(QUESTION, {"type": "object"})
    assert not isinstance(caught.value, OutputError)
    assert len(llm.asked) == 1


@pytest.mark.parametrize(
    ("message", "least"),
    [
        pytest.param(Message(Role.USER, "猫頭鷹" * 5000), 16_384, id="Chinese"),
        pytest.param(
            Message(Role.ASSISTANT, "", (ToolCall("c", "write_note", {"text": "owl " * 8_000}),)),
            8192,
            id="calls",
        ),
    ],
)
async def test_ollama_is_given_room_for_all_that_it_is_asked(
    llm: ScriptedLLM, message: Message, least: int
) -> None:
    llm.reply("Yes.")
    async with opened(llm, "ollama") as model:
        await model.complete([*QUESTION, message])
    assert llm.asked[0].body["options"]["num_ctx"] >= least
