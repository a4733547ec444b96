"""What calls are paid for when things go wrong on the way, on a real database."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine import language as language_module
from engine.errors import BudgetError, LanguageError, NoctuaryError, PackageMissing
from engine.language import Language, Purpose
from engine.models.language.base import Message, Role, Tokens
from tests.scripted_llm import MODEL, PROVIDERS, ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from engine.database import Database
    from engine.settings import Settings

pytestmark = pytest.mark.usefixtures("quick")

QUESTION = (Message(Role.USER, "When do owls hunt?" + " " * 22),)  # 40 letters: 10 tokens by our count


@pytest.fixture
async def language(database: Database, settings: Settings, llm: ScriptedLLM) -> AsyncIterator[Language]:
    held = Language(database, replace(settings, **llm.settings("ollama")))
    yield held
    await held.close()


@pytest.fixture
def limited(database: Database, settings: Settings, llm: ScriptedLLM) -> Callable[[int], Language]:
    def made(limit: int) -> Language:
        return Language(database, replace(settings, **llm.settings("ollama"), llm_daily_token_limit=limit))

    return made


def last(**counts: Any) -> bytes:
    part = {"model": MODEL, "created_at": "2026-01-01T00:00:00Z", "done": True}
    return (
        json.dumps(part | {"message": {"role": "assistant", "content": "At night."}} | counts).encode()
        + b"\n"
    )


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_cancelled_call_of_every_provider_is_in_the_ledger(
    database: Database, settings: Settings, llm: ScriptedLLM, provider: str
) -> None:
    held = Language(database, replace(settings, **llm.settings(provider)))
    llm.reply("x" * 80, "never shown", hold_after=1)
    async with aclosing(held.stream(Purpose.ASK, QUESTION)) as pieces:
        await anext(pieces)
    async with asyncio.timeout(5):
        await llm.hung_up.wait()
    (row,) = await held.ledger()
    assert (row.provider, row.failed, row.prompt_tokens, row.completion_tokens) == (provider, 1, 10, 20)
    await held.close()


async def test_a_try_that_broke_off_unseen_is_paid_for_too(language: Language, llm: ScriptedLLM) -> None:
    llm.reply("x" * 400, "never shown", cut_after=1)
    llm.reply("At night.", tokens=(10, 3))
    await language.complete(Purpose.ASK, QUESTION)
    assert await language.spent_today() >= 10 + 100 + 13


async def test_a_whole_answer_that_is_cancelled_is_paid_for_by_what_was_written(
    language: Language, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, wrote = asyncio.Event(), language_module._Call.wrote

    def told(call: language_module._Call, characters: int) -> None:
        wrote(call, characters)
        read.set()

    monkeypatch.setattr(language_module._Call, "wrote", told)
    llm.reply("x" * 400, "never shown", hold_after=1)
    waiting = asyncio.create_task(language.complete(Purpose.ASK, QUESTION))
    await read.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await language.spent_today() == 110


async def test_json_that_failed_at_the_second_asking_is_paid_for_twice(
    language: Language, llm: ScriptedLLM
) -> None:
    llm.reply("no", tokens=(500, 50))
    llm.reply(status=400)
    with pytest.raises(LanguageError):
        await language.complete_json(Purpose.ASK, QUESTION, {"type": "object"})
    assert await language.spent_today() >= 550


async def test_json_is_not_asked_for_again_when_the_day_is_spent(
    limited: Callable[[int], Language], llm: ScriptedLLM
) -> None:
    held = limited(1000)
    for _ in range(3):
        llm.reply("no", tokens=(10, 900))
    with pytest.raises(LanguageError):
        await held.complete_json(Purpose.ASK, QUESTION, {"type": "object"})
    await held.close()
    assert len(llm.asked) == 1


async def test_a_server_that_is_not_there_takes_no_tokens(language: Language, llm: ScriptedLLM) -> None:
    await llm.__aexit__()
    with pytest.raises(LanguageError, match="does not answer"):
        await language.complete(Purpose.ASK, QUESTION)
    (row,) = await language.ledger()
    assert (row.calls, row.failed, row.tokens) == (1, 1, 0)


async def test_a_package_that_is_missing_takes_no_tokens(
    language: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = language._model(agent=False)

    def lacking() -> None:
        raise PackageMissing("It is not installed.")

    monkeypatch.setattr(model, "_load", lacking)
    with pytest.raises(NoctuaryError, match="not installed"):
        await language.complete(Purpose.ASK, QUESTION)
    assert await language.spent_today() == 0


@pytest.mark.parametrize(
    "counts",
    [{"prompt_eval_count": -5, "eval_count": 1}, {"prompt_eval_count": 10**12, "eval_count": 1}],
    ids=["negative", "huge"],
)
async def test_counts_that_cannot_be_leave_a_row_all_the_same(
    language: Language, llm: ScriptedLLM, counts: dict[str, int]
) -> None:
    llm.reply(raw=last(**counts))
    await language.complete(Purpose.ASK, QUESTION)
    assert len(await language.ledger()) == 1


async def test_a_call_is_within_the_budget_until_its_row_is_written(
    limited: Callable[[int], Language], llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = limited(1000)
    spend, writing, go_on = held._spend, asyncio.Event(), asyncio.Event()

    async def slow(*args: Any, **more: Any) -> None:
        writing.set()
        await go_on.wait()
        await spend(*args, **more)

    monkeypatch.setattr(held, "_spend", slow)
    llm.reply("At night.", tokens=(10, 900))
    llm.always = None
    first = asyncio.create_task(held.complete(Purpose.ASK, QUESTION, max_tokens=950))
    await writing.wait()
    try:
        with pytest.raises(BudgetError):
            await held._left(10, 950)
    finally:
        go_on.set()
        assert (await first).tokens == Tokens(10, 900)
        await held.close()
