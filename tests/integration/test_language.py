"""The metered language model on a real database: what it took is known, and there is an end to it."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from engine.errors import BudgetError, LanguageError, OutputError
from engine.language import Language, Purpose
from engine.models.language.base import Message, Role
from tests.scripted_llm import MODEL, ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.database import Database
    from engine.settings import Settings

pytestmark = pytest.mark.usefixtures("quick")

QUESTION = (Message(Role.USER, "When do owls hunt?" + " " * 22),)  # 40 letters: 10 tokens by our count


@pytest.fixture
async def language(database: Database, settings: Settings, llm: ScriptedLLM) -> AsyncIterator[Language]:
    held = Language(database, replace(settings, **llm.settings("ollama")))
    yield held
    await held.close()


async def taken(language: Language) -> list[tuple[Any, ...]]:
    """The ledger's rows without the day."""
    return [
        (row.purpose, row.calls, row.failed, row.prompt_tokens, row.completion_tokens, row.estimated)
        for row in await language.ledger()
    ]


async def test_every_call_is_in_the_ledger_by_its_purpose(language: Language, llm: ScriptedLLM) -> None:
    llm.reply("At night.", tokens=(100, 20))
    llm.reply("At ", "night.", tokens=(50, 10))
    llm.reply("# Owls", tokens=(5, 1))
    await language.complete(Purpose.ASK, QUESTION)
    async with aclosing(language.stream(Purpose.ASK, QUESTION)) as pieces:
        assert len([piece async for piece in pieces]) == 3
    await language.complete(Purpose.WRITE, QUESTION, agent=True)
    assert await taken(language) == [("ask", 2, 0, 150, 30, False), ("write", 1, 0, 5, 1, False)]
    assert await language.spent_today() == 186
    (row, *_) = await language.ledger()
    assert (row.provider, row.model, row.tokens) == ("ollama", MODEL, 180)


async def test_a_call_that_failed_took_something_too(language: Language, llm: ScriptedLLM) -> None:
    llm.reply(status=400)
    with pytest.raises(LanguageError):
        await language.complete(Purpose.ASK, QUESTION)
    assert await taken(language) == [("ask", 1, 1, 10, 0, True)]


async def test_a_cancelled_call_is_paid_for_by_what_was_written(language: Language, llm: ScriptedLLM) -> None:
    llm.reply("x" * 80, "never shown", hold_after=1)
    async with aclosing(language.stream(Purpose.ASK, QUESTION)) as pieces:
        await anext(pieces)
    await llm.hung_up.wait()
    assert await taken(language) == [("ask", 1, 1, 10, 20, True)]


async def test_json_that_was_never_valid_is_paid_for_whole(language: Language, llm: ScriptedLLM) -> None:
    for _ in range(3):
        llm.reply("no", tokens=(10, 2))
    with pytest.raises(OutputError):
        await language.complete_json(Purpose.ASK, QUESTION, {"type": "object"})
    assert await taken(language) == [("ask", 1, 1, 30, 6, False)]


async def test_the_days_budget_ends_the_calls_and_says_when_it_begins_anew(
    database: Database, settings: Settings, llm: ScriptedLLM
) -> None:
    mine = replace(settings, **llm.settings("ollama"), llm_daily_token_limit=1000)
    held = Language(database, mine)
    try:
        llm.reply("At night.", tokens=(900, 40))
        await held.complete(Purpose.ASK, QUESTION)
        with pytest.raises(BudgetError, match=r"Of today's 1,000 tokens 940 are spent.*midnight"):
            await held.complete(Purpose.ASK, QUESTION)
        assert len(llm.asked) == 1, "nothing is asked that cannot be paid"
        other = Language(database, replace(mine, llm_daily_token_limit=2000))
        llm.reply("At night.")
        await other.complete(Purpose.ASK, QUESTION, max_tokens=5000)
        await other.close()
        assert llm.asked[-1].body["options"]["num_predict"] == 1050, "no more is asked for than is left"
    finally:
        await held.close()


async def test_calls_at_once_share_the_budget(
    database: Database, settings: Settings, llm: ScriptedLLM
) -> None:
    held = Language(database, replace(settings, **llm.settings("ollama"), llm_daily_token_limit=500))
    try:
        llm.reply("At night.", hold_after=0)
        first = asyncio.create_task(held.complete(Purpose.ASK, QUESTION, max_tokens=450))
        await llm.held.wait()
        with pytest.raises(BudgetError):
            await held.complete(Purpose.ASK, QUESTION, max_tokens=450)
        llm.gate.set()
        assert (await first).text == "At night."
        llm.reply("Again.")
        await held.complete(Purpose.ASK, QUESTION, max_tokens=450)
    finally:
        await held.close()


async def test_a_ledger_that_cannot_be_written_loses_no_answer(
    language: Language, llm: ScriptedLLM, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with await psycopg.AsyncConnection.connect(settings.database_url or "", autocommit=True) as owner:
        await owner.execute("ALTER TABLE noctuary.language_use RENAME TO gone")
    llm.reply("At night.")
    with caplog.at_level("WARNING", "noctuary.language"):
        assert (await language.complete(Purpose.ASK, QUESTION)).text == "At night."
    assert "10 tokens of ollama/scripted:1b are missing in the ledger" in caplog.text


async def test_without_a_provider_nothing_is_asked(database: Database, settings: Settings) -> None:
    held = Language(database, settings)
    assert (held.configured, held.name, held.model, held.agent_model) == (False, "", "", "")
    assert held.why_not.startswith("No language model is set.")
    with pytest.raises(LanguageError, match="Set LLM_PROVIDER"):
        await held.complete(Purpose.ASK, QUESTION)
    assert await held.ledger() == []
    await held.close()


async def test_the_ledger_goes_by_this_machines_days(
    language: Language, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO language_use (at, purpose, provider, model, prompt_tokens, completion_tokens)"
            " SELECT now() - number * interval '1 day', 'ask', 'ollama', 'm', number, 0"
            " FROM generate_series(0, 40) AS number"
        )
    rows = await language.ledger(days=3)
    assert [row.prompt_tokens for row in rows] == [0, 1, 2]
    assert await language.spent_today() == 0
