"""No call of the memory crosses from one brain into another, however alike their keys are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import LessonError, TurnGone
from engine.language import Language
from engine.memory import Memory
from engine.memory.model import BrainKey
from engine.notes import Notes
from engine.services import Services

if TYPE_CHECKING:
    from engine.database import Database
    from engine.settings import Settings
    from tests.integration.vault import AttentiveEmbedder

SECRET = "The heron's nest is behind the mill."
RULE = "Say nothing of the heron."

ALIKE = [
    (BrainKey(user="test_user"), BrainKey(user="test_user1")),
    (BrainKey(user="test_user"), BrainKey(user="test%")),
    (BrainKey(user="test_user"), BrainKey(user="test_user' OR '1'='1")),
    (BrainKey(user="caf\u00e9"), BrainKey(user="cafe\u0301")),
    (BrainKey(user="1"), BrainKey(user="*")),
    (BrainKey(user="alice"), BrainKey()),
    (BrainKey(user="alice"), BrainKey(core="other", user="alice")),
]


@pytest.mark.parametrize(("mine", "other"), ALIKE)
async def test_every_call_stays_in_its_brain(
    database: Database, settings: Settings, embedder: AttentiveEmbedder, mine: BrainKey, other: BrainKey
) -> None:
    notes = Notes(database, embedder, settings, Services())
    await notes.prepare()
    memory = Memory(database, settings, notes.embedders, Language(database, settings))
    await memory.add_core("other")
    kept = await memory.remember(mine, f"My name is Olga. {SECRET}")
    await memory.remember(mine, "No, that is wrong: the heron is a secret.")
    await memory.embeddings.run_until_idle()
    batch = await memory.synthesis.prepare(mine, actor="tests")
    assert batch.token is not None
    given = [(cluster.id, RULE) for cluster in batch.clusters]
    await memory.synthesis.record(mine, batch.token, given, actor="tests")
    (lesson,) = await memory.lessons.of(mine)
    await memory.remember(mine, "No, that is wrong: the heron is white.")
    await memory.embeddings.run_until_idle()
    handed = (await memory.synthesis.prepare(mine, actor="tests")).token
    token = (await memory.prepare(mine, SECRET)).turn_token
    assert handed is not None
    assert token is not None

    prepared = await memory.prepare(other, f"My name is Tim. {SECRET}")
    assert (prepared.recalled.sources, prepared.recalled.lessons, prepared.contradiction) == ((), (), None)
    recalled = await memory.recall(other, SECRET, k=50)
    assert (recalled.sources, recalled.lessons) == ((), ())
    assert (await memory.verify(other, f"Your name is Tim. {SECRET}")).ok
    for gone in (
        memory.verify(other, "Yes.", token),
        memory.record(other, token, "Yes."),
        memory.synthesis.record(other, handed, given, actor="tests"),
    ):
        with pytest.raises(TurnGone):
            await gone
    for missing in (
        memory.lessons.detail(lesson.id, other),
        memory.lessons.edit(lesson.id, "Tell all.", actor="tests", key=other),
        memory.lessons.delete([lesson.id], actor="tests", key=other),
        memory.lessons.lift([lesson.id], actor="tests", key=other),
        memory.lessons.pin([lesson.id], pinned=True, actor="tests", key=other),
    ):
        with pytest.raises(LessonError):
            await missing
    assert await memory.recent(other) == []
    assert await memory.turns(other, [kept.packet]) == []
    assert await memory.lessons.of(other) == []
    assert (await memory.metrics(other)).packets == 0
    assert (await memory.synthesis.prepare(other, actor="tests")).token is None
    assert (await memory.synthesis.run(other, actor="tests")).id == 0
    assert await memory.synthesis.runs(key=other) == []

    assert len(await memory.recent(mine)) == 3
    assert [each.text for each in await memory.lessons.of(mine)] == [RULE]
    assert (await memory.record(mine, token, "Yes.")).packet > kept.packet
