"""What tests of language models ask one with, and the mark of a fault that a review found."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from engine.models.language.base import Completion, Message, Role, Tool
from engine.models.language.opening import open_language
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.models.language.base import LanguageModel
    from tests.scripted_llm import ScriptedLLM

QUESTION = (Message(Role.USER, "When do owls hunt?"),)
SEARCH = Tool("search", "Search the notes.", {"type": "object", "properties": {"query": {"type": "string"}}})
SDKS = ("claude", "openai", "grok")


def known(reason: str) -> pytest.MarkDecorator:
    """What does not hold yet. It is strict: whoever mends it takes the mark away."""
    return pytest.mark.xfail(strict=True, reason=reason)


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
