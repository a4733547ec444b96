"""Whether the embedding model reads the languages that the notes are written in."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import AsyncConnection

SAMPLE = 200
"""Passages judged: a share of a fifth is told to within 6 of a hundred, in a tenth of a second."""

HARDLY = 0.5
"""How far the model reads a passage (0..1) below which it hardly does. Of XQuAD's paragraphs in English,
German and Spanish none lies below it with all-MiniLM, of those in Chinese, Arabic, Hindi and Thai all do;
of 300 passages of technical documentation none."""

MUCH = 0.2
"""Share of hardly read passages from which another model is suggested."""

OTHERWISE = 10
"""The notes are judged again when a tenth of them came or went."""

# Hashes are as good as lots, and their index is there.
_SAMPLE = "SELECT text FROM passage WHERE orphaned_at IS NULL ORDER BY hash, format LIMIT %s"


async def unread(connection: AsyncConnection, reads: Callable[[str], float]) -> float:
    """The share (0..1) of the passages with letters that a model hardly reads, by a sample of them."""
    cursor = await connection.execute(_SAMPLE, (SAMPLE,))
    texts = [row[0] for row in await cursor.fetchall() if any(map(str.isalpha, row[0]))]
    return await asyncio.to_thread(_share, texts, reads)


def _share(texts: Sequence[str], reads: Callable[[str], float]) -> float:
    hardly = sum(reads(text) < HARDLY for text in texts)
    return hardly / len(texts) if texts else 0.0


def suggestion(share: float, model: str) -> str:
    """The sentence that suggests another model, empty when the one in use will do."""
    if share < MUCH:
        return ""
    return (
        f"About {share:.0%} of the notes are in languages that {model} hardly reads: they are found by their"
        " words alone. `noctuary models use multilingual` changes to a model that reads them."
    )
