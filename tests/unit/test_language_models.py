"""Every provider's real client against a server that speaks its protocol: one conduct, whatever the provider."""

from __future__ import annotations

import asyncio
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from engine.errors import LanguageError, OutputError
from engine.models.language import calling
from engine.models.language.base import Completion, Finish, Message, Role, Tokens, Tool, ToolCall
from engine.models.language.opening import open_language
from engine.settings import Settings
from tests.scripted_llm import KEY, MODEL, PROVIDERS, ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.models.language.base import LanguageModel

pytestmark = pytest.mark.usefixtures("quick")

QUESTION = (Message(Role.SYSTEM, "Answer briefly."), Message(Role.USER, "When do owls hunt?"))
SCHEMA = {
    "type": "object",
    "properties": {"titles": {"type": "array", "items": {"type": "string"}}},
    "required": ["titles"],
    "additionalProperties": False,
}
SEARCH = Tool(
    "search",
    "Search the notes.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


@pytest.fixture(params=PROVIDERS)
async def model(request: pytest.FixtureRequest, llm: ScriptedLLM) -> AsyncIterator[LanguageModel]:
    held = open_language(Settings(**llm.settings(request.param)))
    yield held
    await held.close()
    await held.close()


async def pieces(model: LanguageModel, **more: Any) -> list[str | Completion]:
    async with aclosing(model.stream(QUESTION, **more)) as stream:
        return [piece async for piece in stream]


async def test_an_answer_comes_whole_with_its_tokens(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("Owls hunt ", "at night.", tokens=(21, 5))
    found = await model.complete(QUESTION, max_tokens=99)
    assert found == Completion("Owls hunt at night.", Tokens(21, 5))
    (asked,) = llm.asked
    assert asked.system == "Answer briefly."
    assert asked.said.endswith("When do owls hunt?")
    assert (asked.body["model"], model.name) == (MODEL, f"{model.provider}/{MODEL}")
    limits = (
        asked.body.get("options", {}).get("num_predict"),
        *map(asked.body.get, ("max_tokens", "max_completion_tokens")),
    )
    assert 99 in limits


async def test_an_answer_comes_piece_by_piece_and_then_whole(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("Owls ", "hunt ", "at night.")
    assert await pieces(model) == [
        "Owls ",
        "hunt ",
        "at night.",
        Completion("Owls hunt at night.", Tokens(7, 3)),
    ]


async def test_pieces_are_handed_on_as_they_come(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("Owls ", "hunt", hold_after=1)
    async with aclosing(model.stream(QUESTION)) as stream:
        assert await anext(stream) == "Owls "
        await llm.held.wait()
        llm.gate.set()
        assert await anext(stream) == "hunt"


async def test_an_answer_that_was_cut_off_or_refused_says_so(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("Owls hunt", finish="length")
    assert (await model.complete(QUESTION)).finish is Finish.LENGTH
    if model.provider != "ollama":  # whose protocol has no word for it
        llm.reply("I will not.", finish="refused")
        assert (await model.complete(QUESTION)).finish is Finish.REFUSED


async def test_what_was_only_thought_is_no_part_of_the_answer(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("At night.", thinking="The user asks about owls.")
    assert (await model.complete(QUESTION)).text == "At night."
    llm.reply("<thi", "nk>Owls", "?</th", "ink>\n\nAt ", "night.")
    assert [piece for piece in await pieces(model) if isinstance(piece, str)] == ["At ", "night."]


async def test_tokens_that_nobody_counted_are_estimated(model: LanguageModel, llm: ScriptedLLM) -> None:
    if model.provider == "claude":
        pytest.skip("its protocol always tells")
    llm.reply("x" * 400, tokens=None)
    assert (await model.complete(QUESTION)).tokens == Tokens(9, 100, estimated=True)


async def test_a_model_calls_tools_and_is_told_what_came_of_it(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    llm.reply(calls=[("search", {"query": "owls"}), ("search", {"query": "night"})], finish="tools")
    found = await model.complete(QUESTION, tools=[SEARCH])
    assert found.finish is Finish.TOOLS
    assert [(call.name, call.arguments) for call in found.calls] == [
        ("search", {"query": "owls"}),
        ("search", {"query": "night"}),
    ]
    assert len({call.id for call in found.calls}) == 2
    llm.reply("Done.")
    turns = (
        *QUESTION,
        Message(Role.ASSISTANT, found.text, found.calls),
        *(Message(Role.TOOL, f"found {call.arguments['query']}", call_id=call.id) for call in found.calls),
    )
    assert (await model.complete(turns, tools=[SEARCH])).text == "Done."
    told = llm.asked[-1].said
    assert "found owls" in told
    assert "found night" in told


async def test_arguments_that_are_no_json_are_a_call_that_no_schema_knows(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    if model.provider == "ollama":
        pytest.skip("its protocol has them as JSON")
    llm.reply(calls=[("search", '{"query": "owl'), ("search", "[1]")])
    found = await model.complete(QUESTION, tools=[SEARCH])
    assert [list(call.arguments) for call in found.calls] == [["not valid"], ["not valid"]]


@pytest.mark.parametrize(
    "said",
    [
        '{"titles": ["Owls", "Bats"]}',
        '```json\n{"titles": ["Owls", "Bats"]}\n```',
        'Here it is:\n{"titles": ["Owls", "Bats"]}\nI hope it helps.',
    ],
)
async def test_json_is_found_where_it_stands(model: LanguageModel, llm: ScriptedLLM, said: str) -> None:
    llm.reply(said[:9], said[9:])
    value, tokens = await model.complete_json(QUESTION, SCHEMA)
    assert value == {"titles": ["Owls", "Bats"]}
    assert tokens == Tokens(7, 3)
    assert "titles" in str(llm.asked[0].body), "the provider is given the schema"


async def test_a_fence_within_a_string_of_json_stays(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply('{"titles": ["```json\\n{}\\n```"]}')
    assert (await model.complete_json(QUESTION, SCHEMA))[0] == {"titles": ["```json\n{}\n```"]}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('["Owls"]', "is not of type 'object'"),
        ('{"title": ["Owls"]}', "'titles' is a required property"),
        ('{"titles": "Owls"}', "at 'titles'"),
        ("", "the answer was empty"),
        ('{"titles": ["Owls", ', "it is not JSON"),
        ('{"titles": ["a"], "titles": ["b"]}', "twice"),
        ('{"titles": [NaN]}', "NaN is no JSON"),
        ('{"titles": ' + "[" * 100_000, "it is nested too deeply"),
        ("I cannot do that.", "it is not JSON"),
    ],
)
async def test_json_that_is_not_valid_is_asked_for_again_with_what_is_wrong(
    model: LanguageModel, llm: ScriptedLLM, said: str, told: str
) -> None:
    llm.reply(said)
    llm.reply('{"titles": ["Owls"]}')
    value, tokens = await model.complete_json(QUESTION, SCHEMA)
    assert value == {"titles": ["Owls"]}
    assert tokens == Tokens(14, 6)
    assert told in llm.asked[1].said


async def test_json_that_is_never_valid_is_an_error_and_never_half_of_it(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    for _ in range(1 + calling.SECOND_ASKINGS):
        llm.reply('{"titles": [1]}')
    with pytest.raises(OutputError, match="gave no valid answer, also when told so: at 'titles/0'"):
        await model.complete_json(QUESTION, SCHEMA)
    assert len(llm.asked) == 1 + calling.SECOND_ASKINGS


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
async def test_what_may_pass_is_tried_again(model: LanguageModel, llm: ScriptedLLM, status: int) -> None:
    llm.reply(status=status)
    llm.reply("At night.")
    assert (await model.complete(QUESTION)).text == "At night."
    assert len(llm.asked) == 2


async def test_it_waits_as_long_as_the_server_asks(
    model: LanguageModel, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(calling.asyncio, "sleep", sleep)
    llm.reply(status=429, headers={"retry-after": "17"})
    llm.reply("At night.")
    await model.complete(QUESTION)
    assert [seconds for seconds in waited if seconds] == [17]


async def test_nobody_waits_at_the_keyboard_for_a_quarter_of_an_hour(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    llm.reply(status=429, headers={"retry-after": "900"}, error="slow down")
    with pytest.raises(LanguageError, match="slow down"):
        await model.complete(QUESTION)
    assert len(llm.asked) == 1


async def test_what_does_not_pass_is_one_sentence_after_the_last_try(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    for _ in range(calling.TRIES):
        llm.reply(status=503, error="overloaded with owls")
    with pytest.raises(LanguageError, match="overloaded with owls") as caught:
        await model.complete(QUESTION)
    assert "\n" not in str(caught.value)
    assert len(llm.asked) == calling.TRIES


@pytest.mark.parametrize(
    ("status", "told"), [(400, "it would not"), (404, "no model"), (413, "it would not")]
)
async def test_what_would_be_refused_again_is_not_tried_again(
    model: LanguageModel, llm: ScriptedLLM, status: int, told: str
) -> None:
    llm.reply(status=status, error=f"it would not: no such model {MODEL}")
    with pytest.raises(LanguageError, match=told):
        await model.complete(QUESTION)
    assert len(llm.asked) == 1


async def test_a_refused_key_names_its_setting_and_never_itself(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    llm.reply(status=401, error=f"Incorrect API key provided: {KEY}")
    with pytest.raises(LanguageError) as caught:
        await model.complete(QUESTION)
    assert any(name in str(caught.value) for name in ("_API_KEY", "OLLAMA_URL"))
    assert KEY not in str(caught.value)
    llm.reply(status=400, error=f"what is {KEY}")
    with pytest.raises(LanguageError) as caught:
        await model.complete(QUESTION)
    if model.provider != "ollama":  # which has none
        assert KEY not in str(caught.value)


async def test_silence_is_given_up(llm: ScriptedLLM) -> None:
    for provider in PROVIDERS:
        llm.reply("Owls ", "hunt", hold_after=1)
        held = open_language(Settings(**llm.settings(provider), llm_timeout=0.2))
        try:
            with pytest.raises(LanguageError, match=r"was silent for 0.2 s|does not answer"):
                await pieces(held)
        finally:
            await held.close()


async def test_what_breaks_off_is_no_answer(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("Owls ", "hunt ", "at night.", cut_after=2)
    with pytest.raises(LanguageError, match=r"broke off|cannot be reached"):
        await pieces(model)
    assert len(llm.asked) == 1, "what was shown cannot be taken back"


async def test_what_breaks_off_unseen_is_tried_again(model: LanguageModel, llm: ScriptedLLM) -> None:
    llm.reply("Owls ", "hunt ", "at night.", cut_after=2)
    llm.reply("At night.")
    assert (await model.complete(QUESTION)).text == "At night."


async def test_nobody_there_is_one_sentence_that_says_where(llm: ScriptedLLM) -> None:
    settings = [llm.settings(provider) for provider in PROVIDERS]
    await llm.__aexit__()
    for each in settings:
        held = open_language(Settings(**each))
        try:
            with pytest.raises(LanguageError, match=f"127.0.0.1:{llm.port}"):
                await held.complete(QUESTION)
        finally:
            await held.close()


@pytest.mark.parametrize("raw", [b"<html>a proxy's page</html>", b"[]", b'{"choices": 7, "message": 7}', b""])
async def test_another_protocol_is_told_from_an_answer(
    model: LanguageModel, llm: ScriptedLLM, raw: bytes
) -> None:
    for _ in range(calling.TRIES):
        llm.reply(raw=raw)
    with pytest.raises(LanguageError) as caught:
        await model.complete(QUESTION)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("how", ["closed", "cancelled"])
async def test_a_call_that_nobody_waits_for_is_ended_at_once(
    model: LanguageModel, llm: ScriptedLLM, how: str
) -> None:
    llm.reply("Owls ", "hunt", hold_after=1)
    stream = model.stream(QUESTION)
    assert await anext(stream) == "Owls "
    if how == "closed":
        await stream.aclose()
    else:
        waiting = asyncio.create_task(anext(stream))
        await llm.held.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await stream.aclose()
    async with asyncio.timeout(5):
        await llm.hung_up.wait()


async def test_a_whole_answer_that_nobody_waits_for_is_ended_too(
    model: LanguageModel, llm: ScriptedLLM
) -> None:
    llm.reply("Owls ", "hunt", hold_after=0)
    waiting = asyncio.create_task(model.complete(QUESTION))
    await llm.held.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5):
        await llm.hung_up.wait()


@pytest.mark.parametrize("name", ["response_format", "stream_options", "max_completion_tokens"])
async def test_a_server_that_does_not_know_a_parameter_is_asked_without_it(
    llm: ScriptedLLM, name: str
) -> None:
    llm.without = {name}
    held = open_language(Settings(**llm.settings("openai")))
    try:
        for _ in range(2):
            llm.reply('{"titles": []}')
            assert (await held.complete_json(QUESTION, SCHEMA))[0] == {"titles": []}
    finally:
        await held.close()
    assert [name in asked.body for asked in llm.asked] == [True, False, False]
    if name == "max_completion_tokens":
        assert "max_tokens" in llm.asked[-1].body


async def test_ollama_is_given_room_for_what_it_is_asked(llm: ScriptedLLM) -> None:
    """It drops the beginning of what is longer than its context without a word."""
    held = open_language(Settings(**llm.settings("ollama")))
    try:
        for length, context in ((100, 4096), (20_000, 8192), (10**6, 32_768)):
            llm.reply("Yes.")
            await held.complete([Message(Role.USER, "x" * length)])
            assert llm.asked[-1].body["options"]["num_ctx"] == context
    finally:
        await held.close()


def test_the_settings_name_the_model() -> None:
    def name(agent: bool = False, **settings: Any) -> str:
        return open_language(Settings(**settings), agent=agent).name

    assert name(llm_provider="ollama") == "ollama/qwen3:4b-instruct"
    assert name(llm_provider="ollama", chat_model="a", agent_model="b") == "ollama/a"
    assert name(llm_provider="ollama", chat_model="a", agent_model="b", agent=True) == "ollama/b"
    assert name(llm_provider="ollama", chat_model="a", agent=True) == "ollama/a"
    assert name(llm_provider="claude", anthropic_api_key="k", anthropic_model="m") == "claude/m"
    assert name(llm_provider="grok", xai_api_key="k", xai_model="m", chat_model="c") == "grok/c"
    assert name(llm_provider="openai", openai_base_url="http://localhost/v1", openai_model="m") == "openai/m"


@pytest.mark.parametrize(
    ("provider", "told"),
    [
        (None, "No language model is set. Set LLM_PROVIDER"),
        ("claude", "ANTHROPIC_API_KEY is not set"),
        ("openai", "OPENAI_API_KEY is not set"),
        ("grok", "XAI_API_KEY is not set"),
    ],
)
def test_what_the_settings_lack_is_named(provider: str | None, told: str) -> None:
    with pytest.raises(LanguageError, match=told):
        open_language(Settings(llm_provider=provider))


async def test_a_call_is_told_by_an_id_that_ties_its_answer_to_it(llm: ScriptedLLM) -> None:
    """Ollama knows no ids, but the name of the tool."""
    held = open_language(Settings(**llm.settings("ollama")))
    call = ToolCall("call_1", "search", {"query": "owls"})
    try:
        llm.reply("Done.")
        await held.complete(
            [*QUESTION, Message(Role.ASSISTANT, "", (call,)), Message(Role.TOOL, "found", call_id="call_1")]
        )
    finally:
        await held.close()
    assert llm.asked[0].body["messages"][-1]["tool_name"] == "search"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_library_is_loaded_beside_the_screen(
    llm: ScriptedLLM, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = open_language(Settings(**llm.settings(provider)))
    threads: list[int] = []
    load = type(held)._load

    def told(model: Any) -> None:
        threads.append(threading.get_ident())
        load(model)

    monkeypatch.setattr(type(held), "_load", told)
    try:
        for _ in range(2):
            llm.reply("At night.")
            await held.complete(QUESTION)
    finally:
        await held.close()
    assert len(threads) == 1
    assert threads != [threading.get_ident()]
