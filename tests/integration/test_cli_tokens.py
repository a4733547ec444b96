"""`noctuary tokens`, and what the doctor says of the language model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.doctor import opened
from engine.doctor.check import State
from engine.language import Language
from tests.scripted_llm import KEY, MODEL, PROVIDERS, ScriptedLLM

if TYPE_CHECKING:
    from engine.database import Database
    from engine.settings import Settings
    from tests.integration.line import Line

SPENT = (
    "INSERT INTO noctuary.language_use (purpose, provider, model, prompt_tokens, completion_tokens, estimated)"
    " VALUES ('ask', 'ollama', E'm\\x1b[31m', 1200, 34, false), ('write', 'ollama', 'm', 5, 6, true)"
)


def test_the_ledger_is_shown_by_day_and_purpose(
    noctuary: Line, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_DAILY_TOKEN_LIMIT", "5000")
    assert noctuary("tokens").out == "Today 0 of 5,000 tokens.\n"
    with psycopg.connect(database_url) as owner:
        owner.execute(SPENT)
    shown = noctuary("tokens")
    assert "ask      ollama/m␛[31m  1      0       1,200    34" in shown.out
    assert "about 5" in shown.out
    assert shown.out.endswith("Today 1,245 of 5,000 tokens.\n")
    assert shown.err == "No language model is set. Set LLM_PROVIDER to ollama, claude, openai or grok.\n"
    found = noctuary("tokens", "--json").json
    assert (found["spent_today"], found["daily_limit"], len(found["ledger"])) == (1245, 5000, 2)


class Held:
    """As much of an engine as the doctor looks at."""

    def __init__(self, language: Language, settings: Settings) -> None:
        self.language = language
        self.settings = settings


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_doctor_looks_without_spending_a_token(
    database: Database, settings: Settings, provider: str
) -> None:
    async with ScriptedLLM() as llm:
        held = Language(database, replace(settings, **llm.settings(provider)))
        check = await opened._language(Held(held, settings))  # type: ignore[arg-type]
        assert (check.state, check.sentence) == (State.OK, f"{provider}/{MODEL} can be had.")
        assert llm.asked == []
        await held.close()
    gone = Language(database, replace(settings, **llm.settings(provider)))
    check = await opened._language(Held(gone, settings))  # type: ignore[arg-type]
    assert check.state is State.WARN
    assert f"127.0.0.1:{llm.port}" in check.sentence
    assert KEY not in check.sentence
    await gone.close()


async def test_no_language_model_is_no_fault(database: Database, settings: Settings) -> None:
    check = await opened._language(Held(Language(database, settings), settings))  # type: ignore[arg-type]
    assert check.state is State.OK
    keyless = Language(database, replace(settings, llm_provider="claude"))
    check = await opened._language(Held(keyless, settings))  # type: ignore[arg-type]
    assert (check.state, check.sentence) == (State.WARN, "ANTHROPIC_API_KEY is not set.")
    spelt = replace(settings, llm_provider="ollama", prompt_version="ask_v9")
    check = await opened._language(Held(Language(database, spelt), spelt))  # type: ignore[arg-type]
    assert check.state is State.WARN
    assert "ask_v9" in check.sentence
