"""What tests of language models ask one with."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from engine.models.language import calling
from engine.models.language.base import Completion, Message, Role, Tool
from engine.models.language.opening import open_language
from engine.settings import Settings
from tests.scripted_llm import ScriptedLLM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.models.language.base import LanguageModel

QUESTION = (Message(Role.USER, "When do owls hunt?"),)
SEARCH = Tool("search", "Search the notes.", {"type": "object", "properties": {"query": {"type": "string"}}})
SDKS = ("claude", "openai", "grok")


PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
async def llm() -> AsyncIterator[ScriptedLLM]:
    """A scripted server of language models in the test's own loop."""
    async with ScriptedLLM() as held:
        yield held


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second tries come at once, and no proxy of this machine stands between."""
    monkeypatch.setattr(calling, "FIRST_PAUSE", 0.01)
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@asynccontextmanager
async def opened(server: ScriptedLLM, provider: str, **more: Any) -> AsyncIterator[LanguageModel]:
    """A provider's model at the server, with other settings where given."""
    model = open_language(Settings(**{**server.settings(provider), **more}))
    try:
        yield model
    finally:
        await model.close()


async def complete(server: ScriptedLLM, provider: str, **more: Any) -> Completion:
    """One answer to one question."""
    async with opened(server, provider, **more) as model:
        return await model.complete(QUESTION, tools=[SEARCH])
