"""What another process on a vault's index runs: its own models and services."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.notes import Notes
from engine.services import Services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.models.embedding.base import Embedder
    from engine.settings import Settings
    from tests.integration.vault import Vault
    from tests.scripted_ollama import Asked


@asynccontextmanager
async def process(
    vault: Vault, embedder: Embedder, *, work: bool = True, **changes: Any
) -> AsyncIterator[Notes]:
    """What another process on the index runs: its own models and services."""
    services = Services()
    settings: Settings = replace(vault.settings, **changes)
    notes = Notes(vault.database, embedder, settings, services)
    await notes.prepare()
    await notes.start(watch=False, work=work, embed=work)
    try:
        yield notes
    finally:
        await services.stop()
        await notes.embedders.close()


def texts(asked: Asked) -> list[str]:
    return asked.body.get("input", []) if asked.path == "/api/embed" else []


def holding(word: str) -> Any:
    """Holds requests for vectors of passages with a word."""
    return lambda asked: any(word in text for text in texts(asked))


def answers(notes: Notes) -> str:
    serving = notes.embedders.serving
    return serving.name if serving else ""
