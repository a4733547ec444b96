"""Learners killed in the midst of it: no turn is skipped, no rule counts twice, and a deletion is whole or none."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from engine.memory.model import Kind, LessonState
from tests.faults.nursery import TASK
from tests.learning import ALICE, BOB, HOME, mind_over
from tests.scripted_llm import Reply
from tests.support import eventually

if TYPE_CHECKING:
    import random
    from collections.abc import AsyncIterator

    from engine.database import Database
    from engine.settings import Settings
    from tests.faults.nursery import Nursery
    from tests.integration.vault import AttentiveEmbedder
    from tests.learning import Mind
    from tests.scripted_llm import ScriptedLLM

_DONE = "SELECT count(*) FROM memory_audit"

KILLS, DELETIONS = 16, 20
RULE = "Use pnpm instead of npm."

_LEFT = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE %s AND datname = current_database()"
)

_WHOLE = {
    "a cluster has the packets it counts": """
        SELECT id FROM cluster WHERE packets <> (SELECT count(*) FROM cluster_packet AS member
            WHERE member.brain = cluster.brain AND member.cluster = cluster.id)""",
    "a run has the clusters and packets it counts": """
        SELECT id FROM synthesis_run AS run
        WHERE clusters <> (SELECT count(*) FROM cluster WHERE cluster.run = run.id)
            OR packets_scanned <> (SELECT count(*) FROM packet WHERE packet.run = run.id)""",
    "a packet is in one cluster": "SELECT packet FROM cluster_packet GROUP BY packet HAVING count(*) > 1",
    "a correction that was seen is in a cluster": """
        SELECT id FROM packet WHERE kind = 'correction' AND run IS NOT NULL
            AND NOT EXISTS (SELECT FROM cluster_packet AS member WHERE member.packet = packet.id)""",
    "what was clustered was seen": """
        SELECT packet.id FROM packet JOIN cluster_packet AS member ON member.packet = packet.id
        WHERE packet.run IS NULL""",
    "each rule counts once": """
        SELECT total FROM (SELECT coalesce(sum(reinforced), 0) AS total FROM lesson) AS lessons
        WHERE total <> (SELECT count(*) FROM cluster WHERE state IN ('created', 'strengthened'))""",
    "each rule is in the audit": """
        SELECT total FROM (SELECT coalesce(sum(reinforced), 0) AS total FROM lesson) AS lessons
        WHERE total <> (SELECT count(*) FROM memory_audit WHERE action IN ('create', 'strengthen'))""",
    "runs tell their yield": """
        SELECT made FROM (SELECT coalesce(sum(created + strengthened), 0) AS made FROM synthesis_run) AS runs
        WHERE made <> (SELECT count(*) FROM cluster WHERE state IN ('created', 'strengthened'))""",
    "a lesson has the sources of its clusters": """
        SELECT member.packet FROM cluster JOIN cluster_packet AS member ON member.cluster = cluster.id
        WHERE cluster.lesson IS NOT NULL AND NOT EXISTS (SELECT FROM lesson_source AS source
            WHERE source.lesson = cluster.lesson AND source.packet = member.packet)""",
}


@pytest.fixture
async def mind(database: Database, settings: Settings, embedder: AttentiveEmbedder) -> AsyncIterator[Mind]:
    async with mind_over(database, settings, embedder) as held:
        yield held


async def whole(mind: Mind) -> None:
    """What must hold whenever no transaction is open."""
    await eventually(lambda: _gone(mind))
    for what, statement in _WHOLE.items():
        assert await mind.rows(statement) == [], what


async def _gone(mind: Mind) -> bool:
    """Whether the server has noticed that the killed one is gone."""
    return await mind.rows(_LEFT, f"{TASK}%") == [(0,)]


def environment_of(mind: Mind, environment: dict[str, str], **more: str) -> dict[str, str]:
    return {**environment, "DATABASE_URL": mind.settings.database_url or "", **more}


async def test_a_synthesis_that_is_killed_is_repeated_and_not_skipped(
    mind: Mind, environment: dict[str, str], nursery: Nursery, chance: random.Random, llm: ScriptedLLM
) -> None:
    llm.always = Reply((RULE,))
    mine = environment_of(mind, environment, **llm.environment("ollama"))
    unfinished = 0
    for number in range(KILLS):
        pid = await nursery.spawn(mine, task="tests.faults.learners:learn")
        await mind.said(f"Turn {number}: pnpm.", f"Turn {number}: use pnpm!")
        await mind.said(f"No, it is {number} owls.", kind=Kind.CORRECTION)
        await asyncio.sleep(chance.uniform(0, 0.06))  # the moment of death
        await nursery.kill(pid)
        await whole(mind)
        unfinished += (await mind.rows("SELECT count(*) FROM synthesis_run WHERE state = 'running'"))[0][
            0
        ] > 0
    assert unfinished, "it was not killed over its work"
    last = await nursery.spawn(mine, task="tests.faults.learners:learn")
    await eventually(lambda: _all_learnt(mind))
    await nursery.kill(last)
    await whole(mind)
    (lesson,) = await mind.all()
    assert lesson.text == RULE
    states = await mind.rows("SELECT DISTINCT state FROM synthesis_run ORDER BY state")
    assert ("failed",) in states


async def _all_learnt(mind: Mind) -> bool:
    waiting: list[tuple[Any, ...]] = await mind.rows(
        "SELECT (SELECT count(*) FROM packet WHERE run IS NULL)"
        " + (SELECT count(*) FROM cluster WHERE state = 'waiting')"
    )
    return waiting == [(0,)]


async def test_a_commit_of_deletions_that_is_killed_is_whole_or_none(
    mind: Mind, environment: dict[str, str], nursery: Nursery, chance: random.Random
) -> None:
    for key in (HOME, ALICE, BOB):
        for number in range(8):
            await mind.learnt(f"Count the {number} owls of tree number {number}.", key=key)
    mine, seen = environment_of(mind, environment), set()
    for _ in range(DELETIONS):
        before = await mind.rows(_DONE)
        pid = await nursery.spawn(mine, task="tests.faults.learners:delete_and_lift")
        await eventually(partial(_goes_on, mind, before))
        await asyncio.sleep(chance.uniform(0, 0.05))  # the moment of death
        await nursery.kill(pid)
        await eventually(lambda: _gone(mind))
        deleted = len(await mind.all(state=LessonState.DELETED))
        assert deleted in {0, 24}
        seen.add(deleted)
        assert (
            await mind.rows(
                "SELECT id FROM lesson WHERE (deleted_at IS NOT NULL)::integer <> (SELECT"
                " count(*) FILTER (WHERE action = 'delete') - count(*) FILTER (WHERE action = 'lift')"
                " FROM memory_audit AS done WHERE done.lesson = lesson.id)"
            )
            == []
        ), "what was done is in the audit, and nothing else is"
    assert seen == {0, 24}, "it was not killed over its work"


async def _goes_on(mind: Mind, before: list[tuple[Any, ...]]) -> bool:
    """Whether something more was done."""
    return await mind.rows(_DONE) > before
