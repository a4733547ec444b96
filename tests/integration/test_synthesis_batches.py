"""Synthesis by the caller's model: a token is good once, in its brain, for an hour; what is no rule is skipped."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.errors import CoreUnknown, LessonError, TurnGone
from engine.memory import batches, distilling
from engine.memory import lesson_changes as changes
from engine.memory import synthesis_rows as rows
from engine.memory.brains import entered
from engine.memory.model import BrainKey, ClusterState, Kind, LessonState
from tests.learning import ALICE, BOB, CHATTER, HOME, PNPM, TABS, TABS_AGAIN, TESTS
from tests.support import eventually

if TYPE_CHECKING:
    from engine.memory.model import SynthesisBatch
    from tests.learning import Mind

RULE, TEST_RULE = "Use pnpm instead of npm.", "Run the tests before each commit."
HTTP = "http"


async def prepared(mind: Mind, key: BrainKey = HOME) -> tuple[SynthesisBatch, str]:
    """A batch that is there, with its token."""
    batch = await mind.synthesis.prepare(key, actor=HTTP)
    assert batch.token
    return batch, batch.token


async def test_what_waits_is_handed_out_and_taken_back(mind: Mind) -> None:
    await mind.said(*PNPM, *CHATTER, *TESTS)
    batch, token = await prepared(mind)
    assert batch.packets_scanned == 7
    assert batch.system == distilling.system()
    pnpm, tests = batch.clusters
    assert all(text in pnpm.prompt for text in PNPM)
    assert all(text in tests.prompt for text in TESTS)
    assert CHATTER[0] not in pnpm.prompt + tests.prompt
    outcomes, run = await mind.synthesis.record(
        HOME, token, [(pnpm.id, RULE), (tests.id, "NONE")], actor="mcp x"
    )
    assert [outcome.state for outcome in outcomes] == [ClusterState.CREATED, ClusterState.NOTHING]
    assert (run.state, run.distiller, run.created, run.nothing, run.waiting) == (
        "completed",
        "caller",
        1,
        1,
        0,
    )
    (lesson,) = await mind.all()
    assert (lesson.text, lesson.created_by, lesson.sources) == (RULE, "caller mcp x", 3)


@pytest.mark.parametrize("nothing", [None, "", " \n", "NONE", "none.", "**NONE**"])
async def test_nothing_durable_is_an_outcome(mind: Mind, nothing: str | None) -> None:
    await mind.said(*PNPM)
    batch, token = await prepared(mind)
    (outcome,), run = await mind.synthesis.record(HOME, token, [(batch.clusters[0].id, nothing)], actor=HTTP)
    assert (outcome.state, run.nothing, run.failed, await mind.all()) == (ClusterState.NOTHING, 1, 0, [])


async def test_there_is_no_token_where_nothing_waits(mind: Mind) -> None:
    assert (await mind.synthesis.prepare(HOME, actor=HTTP)).token is None
    await mind.said(*CHATTER)
    batch = await mind.synthesis.prepare(HOME, actor=HTTP)
    assert (batch.token, batch.clusters, batch.packets_scanned) == (None, (), 2)
    (run,) = await mind.synthesis.runs()
    assert (run.state, run.packets_scanned) == ("completed", 2)
    assert (await mind.synthesis.prepare(HOME, actor=HTTP)).packets_scanned == 0
    assert len(await mind.synthesis.runs()) == 1
    with pytest.raises(CoreUnknown):
        await mind.synthesis.prepare(BrainKey(core="nowhere"), actor=HTTP)


async def test_what_was_not_recorded_is_handed_out_again_with_another_token(mind: Mind) -> None:
    await mind.said(*PNPM)
    first, one = await prepared(mind)
    second, other = await prepared(mind)
    assert one != other
    assert [each.id for each in first.clusters] == [each.id for each in second.clusters]
    assert second.packets_scanned == 0
    rule = [(first.clusters[0].id, RULE)]
    assert (await mind.synthesis.record(HOME, other, rule, actor=HTTP))[0][0].state is ClusterState.CREATED
    (late,), run = await mind.synthesis.record(HOME, one, rule, actor=HTTP)
    assert (late.state, late.note, run.created) == (ClusterState.CREATED, "It was decided already.", 0)
    assert len(await mind.all()) == 1


@pytest.mark.parametrize(
    "how", ["unknown", "used", "expired", "another brain's", "of a turn", "empty", "odd"]
)
async def test_a_token_that_is_not_valid(mind: Mind, how: str) -> None:
    await mind.said(*PNPM)
    await mind.said(*TESTS, key=BOB)
    batch, token = await prepared(mind)
    _, bobs = await prepared(mind, BOB)
    if how == "used":
        await mind.synthesis.record(HOME, token, [], actor=HTTP)
    elif how == "expired":
        await mind.rows("UPDATE synthesis_run SET token_expires_at = now()", key=HOME)
    given = {"unknown": "x" * 43, "another brain's": bobs, "empty": "", "odd": "\0\ud800' OR true --"}.get(
        how, token
    )
    if how == "of a turn":
        given = token[::-1]
    with pytest.raises(TurnGone):
        await mind.synthesis.record(HOME, given, [(batch.clusters[0].id, RULE)], actor=HTTP)
    assert await mind.all() == []
    assert len(await mind.synthesis.waiting()) == 2


async def test_a_token_is_kept_as_its_hash_alone(mind: Mind) -> None:
    await mind.said(*PNPM)
    _, token = await prepared(mind)
    ((row,),) = await mind.rows("SELECT synthesis_run::text FROM synthesis_run")
    assert token not in row
    assert token.encode().hex() not in row


async def test_used_twice_at_once_it_is_good_for_one(mind: Mind) -> None:
    await mind.said(*PNPM)
    batch, token = await prepared(mind)
    given = [(batch.clusters[0].id, RULE)]
    outcomes = await asyncio.gather(
        *(mind.synthesis.record(HOME, token, given, actor=HTTP) for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(outcome, TurnGone) for outcome in outcomes) == 3
    assert [lesson.reinforced for lesson in await mind.all()] == [1]


async def test_one_bad_rule_sinks_nothing_and_its_cluster_waits_on(mind: Mind) -> None:
    await mind.said(*PNPM, *TESTS)
    await mind.said(TABS, TABS_AGAIN)
    batch, token = await prepared(mind)
    pnpm, tests, tabs = (each.id for each in batch.clusters)
    given = [
        (pnpm, "word " * 100),
        (2**70, RULE),
        (-1, RULE),
        (999, RULE),
        (tests, f"{RULE}\n{TEST_RULE}"),
        (tabs, TABS),
        (tabs, TABS),
    ]
    outcomes, run = await mind.synthesis.record(HOME, token, given, actor=HTTP)
    assert [outcome.state for outcome in outcomes] == [
        *[ClusterState.WAITING] * 5,
        *[ClusterState.CREATED] * 2,
    ]
    assert [outcome.note for outcome in outcomes] == [
        "This is no rule: it has 499 characters.",
        *["There is no such cluster here."] * 3,
        "This is no rule: it has 2 lines.",
        "",
        "It was decided already.",
    ]
    assert (run.created, run.failed, run.waiting, run.state) == (1, 2, 2, "completed")
    assert [(each.id, each.attempts) for each in await mind.synthesis.waiting()] == [(pnpm, 0), (tests, 0)]
    assert (await mind.synthesis.waiting())[0].error == "This is no rule: it has 499 characters."
    assert await mind.texts() == [TABS]


async def test_clusters_of_another_brain_are_not_there(mind: Mind) -> None:
    await mind.said(*PNPM, key=ALICE)
    await mind.said(*TESTS, key=BOB)
    alice, _ = await prepared(mind, ALICE)
    bob, token = await prepared(mind, BOB)
    assert all(text not in bob.clusters[0].prompt for text in PNPM)
    (outcome,), _ = await mind.synthesis.record(BOB, token, [(alice.clusters[0].id, RULE)], actor=HTTP)
    assert (outcome.state, outcome.lesson) == (ClusterState.WAITING, None)
    assert await mind.all() == []
    assert len(await mind.synthesis.waiting()) == 2
    assert [run.user for run in await mind.synthesis.runs(key=BOB)] == ["bob"]


async def test_a_cluster_made_after_the_batch_is_none_of_it(mind: Mind) -> None:
    await mind.said(*PNPM)
    _, token = await prepared(mind)
    await mind.said(*TESTS)
    later, _ = await prepared(mind)
    (outcome,), _ = await mind.synthesis.record(HOME, token, [(later.clusters[1].id, TEST_RULE)], actor=HTTP)
    assert outcome.state is ClusterState.WAITING
    assert await mind.all() == []


async def test_a_batch_is_bounded_and_the_oldest_come_first(
    mind: Mind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 2)
    for text in ("No, on Tuesday.", "No, the cat is black.", "No, seven pages."):
        await mind.said(text, kind=Kind.CORRECTION)
    batch, token = await prepared(mind)
    assert ["Tuesday" in batch.clusters[0].prompt, "cat" in batch.clusters[1].prompt] == [True, True]
    await mind.synthesis.record(HOME, token, [(each.id, None) for each in batch.clusters], actor=HTTP)
    rest, _ = await prepared(mind)
    assert ["seven" in each.prompt for each in rest.clusters] == [True]
    with pytest.raises(LessonError):
        await mind.synthesis.record(HOME, token, [(1, None)] * (batches.MOST_RECORDED + 1), actor=HTTP)


async def test_a_tombstone_holds_against_a_caller_too(mind: Mind) -> None:
    lesson = (await mind.learnt(RULE)).lesson
    await mind.rows("UPDATE packet SET recalled = true", key=HOME)
    await mind.lessons.delete([lesson], actor="human")
    await mind.said(*PNPM)
    batch, token = await prepared(mind)
    (outcome,), run = await mind.synthesis.record(
        HOME, token, [(batch.clusters[0].id, "Use pnpm rather than npm.")], actor=HTTP
    )
    assert (outcome.state, outcome.lesson) == (ClusterState.TOMBSTONED, lesson)
    assert outcome.note == f"Its like, L{lesson}, was deleted."
    assert run.tombstoned == 1
    assert await mind.texts(state=LessonState.LIVING) == []


async def test_a_batch_that_nobody_recorded_is_told(mind: Mind) -> None:
    await mind.said(*PNPM)
    await prepared(mind)
    await mind.rows("UPDATE synthesis_run SET token_expires_at = now()", key=HOME)
    await prepared(mind)
    young, old = await mind.synthesis.runs()
    assert (young.state, old.state) == ("running", "failed")
    assert old.error == "Nothing was recorded before its token expired."


async def test_a_person_and_a_caller_at_the_same_batch_do_not_lock_up(mind: Mind) -> None:
    await mind.said(*PNPM)
    batch, token = await prepared(mind)
    (run,) = await mind.synthesis.runs()
    async with entered(mind.database, HOME) as (connection, brain):
        await changes.lock(connection, brain)  # as a person's distilling does, before it counts to the run
        given = [(batch.clusters[0].id, RULE)]
        recording = asyncio.create_task(mind.synthesis.record(HOME, token, given, actor=HTTP))
        await eventually(lambda: _someone_waits(mind))
        await rows.tally(connection, brain, run.id, "nothing")
    (outcome,), done = await recording
    assert (outcome.state, done.created, done.nothing) == (ClusterState.CREATED, 1, 1)


async def _someone_waits(mind: Mind) -> bool:
    return bool(await mind.rows("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))


async def test_a_secret_is_kept_of_no_rule_and_of_no_actor(mind: Mind) -> None:
    secret = "ghp_" + "a1B2c3D4e" * 4
    actor = f"mcp {secret} \x1b[2J"
    await mind.said(*PNPM)
    batch = await mind.synthesis.prepare(HOME, actor=actor)
    assert batch.token is not None
    given = [(cluster.id, f"Publish with {secret}.") for cluster in batch.clusters]
    await mind.synthesis.record(HOME, batch.token, given, actor=actor)
    (lesson,) = await mind.all()
    assert lesson.text == "Publish with [masked: GitHub token]."
    await mind.lessons.edit(lesson.id, f"Push with {secret}.", actor=actor)
    await mind.lessons.delete([lesson.id], actor=actor, reason=f"It tells {secret}.")
    for table in ("synthesis_run", "cluster", "lesson", "memory_audit"):
        kept = f"SELECT count(*) FROM {table} AS kept WHERE kept::text ~* %s OR kept::text LIKE %s"
        assert await mind.rows(kept, secret, "%\x1b%") == [(0,)], table
