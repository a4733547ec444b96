"""Lessons: learned once, renewed by use, deleted for good until lifted, and each change in the audit."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import psycopg
import pytest

from engine.errors import CoreUnknown, LessonError
from engine.memory import lesson_changes
from engine.memory.brains import entered, entered_by_id
from engine.memory.learning import learn
from engine.memory.lesson_changes import LONGEST_LESSON, LONGEST_REASON, Doing
from engine.memory.lesson_rows import ALWAYS, EXPIRING_DAYS
from engine.memory.model import BrainKey, ClusterState, LessonFilter, LessonState
from tests.hostile import PAYLOADS, STEERS
from tests.learning import ALICE, BOB, HOME, NO_TABS, TABS, TABS_AGAIN, mind_over

if TYPE_CHECKING:
    from engine.memory.learning import Rule
    from engine.memory.model import GivenLesson, Lesson
    from tests.learning import Mind

HUMAN = "human"
TEA = "Offer tea before coffee."


async def given(mind: Mind, text: str | None, key: BrainKey = HOME, k: int = 8) -> list[GivenLesson]:
    meant = (await mind.meaning.of(text))[0] if text else None
    async with entered(mind.database, key) as (connection, brain):
        return await mind.lessons.given(connection, brain, meant, k)


async def use(mind: Mind, *ids: int, key: BrainKey = HOME) -> None:
    async with entered(mind.database, key) as (connection, brain):
        await mind.lessons.used(connection, brain, ids)


async def one(mind: Mind, lesson: int) -> Lesson:
    (found,) = await mind.all(id=lesson)
    return found


# What a rule becomes


async def test_a_rule_said_in_other_words_strengthens_the_lesson(mind: Mind) -> None:
    first = await mind.learnt(TABS)
    again = await mind.learnt(TABS_AGAIN)
    assert (first.state, again.state) == (ClusterState.CREATED, ClusterState.STRENGTHENED)
    assert first.lesson == again.lesson
    (lesson,) = await mind.all()
    assert (lesson.text, lesson.reinforced, lesson.sources) == (TABS, 2, 2)


async def test_only_use_renews_a_living_lesson_and_one_that_had_expired_begins_anew(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    for days, expected in ((2, 2), (-1, 30)):
        async with entered_by_id(mind.database, (await mind.all(state=None))[0].brain) as connection:
            await connection.execute(
                "UPDATE lesson SET expires_at = now() + make_interval(days => %s) WHERE id = %s",
                (days, lesson),
            )
        assert (await mind.learnt(TABS_AGAIN)).lesson == lesson
        (found,) = await mind.all(state=LessonState.LIVING)
        left = found.days_left(datetime.now(UTC))
        assert left == pytest.approx(expected, abs=0.01)


async def test_the_contrary_of_a_lesson_is_another(mind: Mind) -> None:
    await mind.learnt(TABS)
    assert (await mind.learnt(NO_TABS)).state is ClusterState.CREATED
    assert (await mind.learnt("Use 2 spaces in YAML.")).state is ClusterState.CREATED
    assert (await mind.learnt("Use 4 spaces in YAML.")).state is ClusterState.CREATED
    assert [lesson.reinforced for lesson in await mind.all()] == [1, 1, 1, 1]


@pytest.mark.parametrize("words", [TABS, TABS.lower().rstrip("."), TABS_AGAIN])
async def test_a_deleted_lesson_does_not_come_back_in_other_words(mind: Mind, words: str) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.lessons.delete([lesson], actor=HUMAN, reason="we use spaces")
    learnt = await mind.learnt(words)
    assert (learnt.state, learnt.lesson) == (ClusterState.TOMBSTONED, lesson)
    assert learnt.note == f"Its like, L{lesson}, was deleted (we use spaces)."
    assert await mind.texts(state=LessonState.LIVING) == []
    assert (await mind.learnt(NO_TABS)).state is ClusterState.CREATED, "its contrary may be learned"
    await mind.lessons.lift([lesson], actor=HUMAN)
    assert (await mind.learnt(words)).state is ClusterState.STRENGTHENED


async def test_a_tombstone_holds_though_its_vector_is_of_another_model(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.lessons.delete([lesson], actor=HUMAN)
    await mind.said("Indent code with tabs.", "Tabs for indenting code!")
    await mind.synthesis.run(HOME, actor=HUMAN)
    await mind.rows("UPDATE lesson_embedding SET state = 'pending', vector = NULL", key=HOME)
    (cluster,) = await mind.synthesis.waiting()
    outcome = await mind.synthesis.distil(cluster.id, TABS_AGAIN, actor=HUMAN)
    assert (outcome.state, outcome.lesson) == (ClusterState.TOMBSTONED, lesson)


async def test_a_vector_of_an_older_wording_is_not_kept(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    meant = await mind.meaning.passage("something else")
    assert meant is not None
    async with entered(mind.database, HOME) as (connection, brain):
        before = await mind.rows("SELECT vector::text FROM lesson_embedding")
        await lesson_changes.keep_vector(connection, brain, lesson, "something else", meant)
    assert await mind.rows("SELECT vector::text FROM lesson_embedding") == before


async def test_an_expired_lesson_is_revived_by_being_learned_again(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.as_if_days_later(31)
    assert (await one(mind, lesson)).state is LessonState.EXPIRED
    assert (await mind.learnt(TABS_AGAIN)).state is ClusterState.STRENGTHENED
    assert (await one(mind, lesson)).state is LessonState.LIVING


async def test_two_that_learn_the_same_at_once_make_one_lesson(mind: Mind) -> None:
    await mind.said(TABS)
    rules = [await mind.rule(words) for words in (TABS, TABS_AGAIN, TABS, TABS_AGAIN)]
    begun = asyncio.Barrier(len(rules))

    async def learn_at_once(rule: Rule) -> ClusterState:
        async with entered(mind.database, HOME) as (connection, brain):
            await begun.wait()
            doing = Doing("tests", mind.settings.lesson_days)
            return (await learn(connection, brain, rule, doing, mind.lessons.models())).state

    states = await asyncio.gather(*map(learn_at_once, rules))
    assert sorted(states) == ["created", "strengthened", "strengthened", "strengthened"]
    (lesson,) = await mind.all()
    assert lesson.reinforced == 4


async def test_without_any_model_words_alone_are_compared(mind: Mind) -> None:
    await mind.learnt(TABS)
    again = await mind.learnt(" always use TABS for indentation", blind=True)
    assert again.state is ClusterState.STRENGTHENED
    blind = await mind.learnt(TABS_AGAIN, blind=True)
    assert blind.state is ClusterState.CREATED
    assert await mind.rows("SELECT lesson FROM lesson_embedding WHERE state = 'pending'") == [(blind.lesson,)]


async def test_the_same_rule_of_two_people_is_two_lessons(mind: Mind) -> None:
    alice, bob = await mind.learnt(TABS, key=ALICE), await mind.learnt(TABS, key=BOB)
    assert alice.state is bob.state is ClusterState.CREATED
    await mind.lessons.delete([alice.lesson], actor=HUMAN)
    assert (await mind.learnt(TABS_AGAIN, key=BOB)).state is ClusterState.STRENGTHENED


# Its days


async def test_a_lesson_lives_its_days_and_is_renewed_by_use_alone(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    fresh = await one(mind, lesson)
    assert fresh.days_left(datetime.now(UTC)) == pytest.approx(mind.settings.lesson_days, abs=0.01)
    await mind.as_if_days_later(29)
    await mind.lessons.page(LessonFilter())
    await mind.lessons.detail(lesson)
    await mind.lessons.edit(lesson, f"{TABS} In Go.", actor=HUMAN)
    assert (await one(mind, lesson)).days_left(datetime.now(UTC)) == pytest.approx(1, abs=0.01)
    await use(mind, lesson)
    used = await one(mind, lesson)
    assert used.days_left(datetime.now(UTC)) == pytest.approx(30, abs=0.01)
    assert (used.uses, used.last_used_at is not None) == (1, True)


async def test_a_clock_set_back_takes_no_days_from_a_lesson(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.rows(
        "UPDATE lesson SET expires_at = now() + interval '90 days', last_used_at = now() + interval '60 days'",
        key=HOME,
    )
    before = await one(mind, lesson)
    await use(mind, lesson)
    await mind.learnt(TABS_AGAIN)
    after = await one(mind, lesson)
    assert (after.expires_at, after.last_used_at) == (before.expires_at, before.last_used_at)
    assert (after.uses, after.reinforced) == (1, 2)


async def test_expiry_is_seen_before_it_comes_and_a_pinned_lesson_has_none(mind: Mind) -> None:
    tabs, tea = (await mind.learnt(TABS)).lesson, (await mind.learnt(TEA)).lesson
    assert (await mind.lessons.counts()).expiring == 0
    await mind.as_if_days_later(30 - EXPIRING_DAYS + 0.5)
    counts = await mind.lessons.counts()
    assert (counts.living, counts.expiring) == (2, 2)
    assert counts.soonest_expiry is not None
    assert counts.soonest_expiry - datetime.now(UTC) < timedelta(days=EXPIRING_DAYS)
    assert await mind.lessons.pin([tea], pinned=True, actor=HUMAN) == [tea]
    assert (await mind.lessons.counts()).expiring == 1
    await mind.as_if_days_later(30)
    assert [lesson.id for lesson in await mind.all(state=LessonState.LIVING)] == [tea]
    assert [lesson.id for lesson in await mind.all(state=LessonState.EXPIRED)] == [tabs]
    assert (await one(mind, tea)).days_left(datetime.now(UTC)) is None
    assert [lesson.id for lesson in await given(mind, TABS)] == [tea]


# What goes with a turn


async def test_lessons_that_have_to_do_with_a_turn_go_with_it(mind: Mind) -> None:
    tabs, tea = (await mind.learnt(TABS)).lesson, (await mind.learnt(TEA)).lesson
    found = await given(mind, "How shall I indent this code, with tabs?")
    assert [(each.id, each.text) for each in found] == [(tabs, TABS)]
    assert found[0].similarity is not None
    assert 0.3 < found[0].similarity <= 1
    assert [each.id for each in await given(mind, "What may I drink, tea or coffee?")] == [tea]
    assert await given(mind, "The moons of Jupiter") == []
    assert await given(mind, None) == []


async def test_pinned_lessons_and_those_learned_most_often_go_with_every_turn(mind: Mind) -> None:
    often = []
    for number, text in enumerate((TABS, TEA, "Whisper in libraries.", "Feed the cat at noon."), 2):
        learnt = [await mind.learnt(text) for _ in range(number)]
        often.append(learnt[0].lesson)
    once = (await mind.learnt("Sing in the rain.")).lesson
    assert [each.id for each in await given(mind, None)] == often[::-1][:ALWAYS]
    await mind.lessons.pin([once], pinned=True, actor=HUMAN)
    assert [each.id for each in await given(mind, None)] == [once, *often[::-1][:ALWAYS]]
    assert [each.id for each in await given(mind, None, k=2)] == [once, often[-1]]
    await mind.lessons.delete([once, often[-1]], actor=HUMAN)
    assert [each.id for each in await given(mind, None)] == often[::-1][1:]


# What a person does


async def test_deleting_is_idempotent_and_leaves_a_tombstone(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    assert await mind.lessons.delete([lesson, 999], actor=HUMAN, reason="wrong") == [lesson]
    assert await mind.lessons.delete([lesson, 2**70, -1], actor=HUMAN) == []
    (stone,) = await mind.all(state=LessonState.DELETED)
    assert (stone.deleted_by, stone.reason) == (HUMAN, "wrong")
    assert stone.deleted_at is not None
    assert await mind.rows("SELECT count(*) FROM lesson_embedding WHERE vector IS NOT NULL") == [(1,)]
    assert await mind.lessons.lift([lesson], actor=HUMAN) == [lesson]
    assert await mind.lessons.lift([lesson], actor=HUMAN) == []
    lifted = await one(mind, lesson)
    assert (lifted.state, lifted.deleted_by, lifted.reason) == (LessonState.LIVING, "", "")


async def test_lifting_gives_all_days_back(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.lessons.delete([lesson], actor=HUMAN)
    await mind.as_if_days_later(100)
    await mind.lessons.lift([lesson], actor=HUMAN)
    assert (await one(mind, lesson)).days_left(datetime.now(UTC)) == pytest.approx(30, abs=0.01)


async def test_an_edit_keeps_sources_and_history_and_is_found_by_its_new_meaning(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await use(mind, lesson)
    edited = await mind.lessons.edit(lesson, f"  {TEA}\n", actor=HUMAN)
    assert (edited.text, edited.uses, edited.sources, edited.id) == (TEA, 1, 1, lesson)
    assert edited.edited_at is not None
    assert [each.id for each in await given(mind, "May I have tea or coffee?")] == [lesson]
    assert await given(mind, "How are lines of code indented?") == []
    assert (await mind.learnt(TABS)).state is ClusterState.CREATED
    detail = await mind.lessons.detail(lesson)
    assert [turn.input for turn in detail.sources] == [TABS]
    assert [row.action for row in detail.history] == ["create", "edit"]
    same = await mind.lessons.edit(lesson, TEA, actor=HUMAN)
    assert same.edited_at == edited.edited_at
    assert len((await mind.lessons.detail(lesson)).history) == 2


@pytest.mark.parametrize("text", ["", " \n\t ", "x" * (LONGEST_LESSON + 1)])
async def test_what_is_no_text_is_refused(mind: Mind, text: str) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    with pytest.raises(LessonError):
        await mind.lessons.edit(lesson, text, actor=HUMAN)
    assert (await one(mind, lesson)).text == TABS


async def test_a_tombstone_is_not_edited_or_pinned(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.lessons.delete([lesson], actor=HUMAN)
    with pytest.raises(LessonError, match="was deleted"):
        await mind.lessons.edit(lesson, TEA, actor=HUMAN)
    assert await mind.lessons.pin([lesson], pinned=True, actor=HUMAN) == []


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
async def test_hostile_words_are_kept_as_what_can_be_shown(mind: Mind, payload: str) -> None:
    lesson = (await mind.learnt(TABS)).lesson
    await mind.lessons.edit(lesson, f"owl {payload[:500]} end", actor=payload)
    await mind.lessons.delete([lesson], actor=payload, reason=payload)
    stone = await one(mind, lesson)
    kept = [stone.text, stone.deleted_by, stone.reason, *(row.actor for row in await mind.lessons.audit(10))]
    assert [text for text in kept if STEERS.search(text)] == []
    assert len(stone.reason) <= 10 * LONGEST_REASON
    assert await mind.all(text=payload[:100]) == await mind.all(text=payload[:100].upper())


# The audit


async def test_everything_that_is_done_is_in_the_audit_and_stays_there(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS, actor="model x/y")).lesson
    await mind.learnt(TABS_AGAIN, actor="caller mcp z")
    await mind.lessons.pin([lesson], pinned=True, actor=HUMAN)
    await mind.lessons.pin([lesson], pinned=True, actor=HUMAN)
    await mind.lessons.pin([lesson], pinned=False, actor=HUMAN)
    await mind.lessons.edit(lesson, TEA, actor="http")
    await mind.lessons.delete([lesson], actor=HUMAN, reason="no")
    await mind.lessons.lift([lesson], actor=HUMAN)
    await use(mind, lesson)
    rows = (await mind.lessons.audit(50, lesson))[::-1]
    assert [(row.actor, row.action) for row in rows] == [
        ("model x/y", "create"),
        ("caller mcp z", "strengthen"),
        (HUMAN, "pin"),
        (HUMAN, "unpin"),
        ("http", "edit"),
        (HUMAN, "delete"),
        (HUMAN, "lift"),
    ]
    edit, delete = rows[4], rows[5]
    assert edit.before is not None
    assert edit.after is not None
    assert (edit.before["text"], edit.after["text"]) == (TABS, TEA)
    assert delete.before is not None
    assert delete.after is not None
    assert (delete.before["deleted"], delete.after["deleted"], delete.reason) == (False, True, "no")
    assert all(earlier.at <= later.at for earlier, later in pairwise(rows))
    brain = (await one(mind, lesson)).brain
    for statement in (
        "UPDATE memory_audit SET actor = 'nobody'",
        "DELETE FROM memory_audit",
        "TRUNCATE memory_audit",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with entered_by_id(mind.database, brain) as connection:
                await connection.execute(statement)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with entered_by_id(mind.database, brain) as connection:
            await connection.execute("DELETE FROM lesson")


async def test_what_is_undone_in_one_commit_is_done_in_one(mind: Mind) -> None:
    ids = [(await mind.learnt(text, key=key)).lesson for key in (ALICE, BOB) for text in (TABS, TEA)]
    assert await mind.lessons.delete(ids[::-1], actor=HUMAN) == sorted(ids)
    assert await mind.texts(state=LessonState.LIVING) == []
    assert await mind.lessons.lift(ids, actor=HUMAN) == sorted(ids)
    stamps = await mind.rows("SELECT DISTINCT xmin::text FROM lesson")
    assert len(stamps) == 1, "one transaction for all brains"


async def test_two_people_who_delete_the_same_at_once_do_not_lock_up(mind: Mind) -> None:
    ids = [(await mind.learnt(text, key=key)).lesson for key in (ALICE, BOB) for text in (TABS, TEA)]
    for _ in range(5):
        done = await asyncio.gather(
            mind.lessons.delete(ids, actor=HUMAN), mind.lessons.delete(ids[::-1], actor="http")
        )
        assert sorted(done[0] + done[1]) == sorted(ids), "each is deleted by one of them"
        await mind.lessons.lift(ids, actor=HUMAN)


# The list


async def test_the_list_is_filtered_ordered_and_paged(mind: Mind) -> None:
    tabs = (await mind.learnt(TABS, key=ALICE)).lesson
    await mind.as_if_days_later(10, key=ALICE)
    tea = (await mind.learnt(TEA, key=BOB)).lesson
    cat = (await mind.learnt("Feed the cat at noon.", key=BOB)).lesson
    await use(mind, tea, key=BOB)

    async def ids(order: str = "newest", **where: object) -> list[int]:
        found, total = await mind.lessons.page(LessonFilter(**where), order=order)
        assert len(found) == total
        return [lesson.id for lesson in found]

    assert await ids() == [cat, tea, tabs]
    assert await ids("expiring") == [tabs, tea, cat] or await ids("expiring") == [tabs, cat, tea]
    assert await ids("unused") == [tabs, cat, tea]
    assert await ids(text="COFFEE tea") == [tea]
    assert await ids(text="coffee tabs") == []
    assert await ids(text="%") == []
    assert await ids(user="alice") == [tabs]
    assert await ids(core="default", user="bob") == [cat, tea]
    assert await ids(core="other") == []
    assert await ids(older_than_days=9) == [tabs]
    assert await ids(unused=True) == [cat, tabs]
    assert await ids(id=tea) == [tea]
    found, total = await mind.lessons.page(LessonFilter(), offset=1, limit=1)
    assert ([lesson.id for lesson in found], total) == ([tea], 3)
    assert [lesson.id for lesson in await mind.lessons.of(BOB)] == [tea, cat]
    assert [lesson.id for lesson in await mind.lessons.of(BOB, limit=1)] == [tea]


async def test_new_is_what_came_or_grew_since_the_last_visit(mind: Mind) -> None:
    tabs = (await mind.learnt(TABS)).lesson
    assert [lesson.id for lesson in await mind.all(new=True)] == [tabs]
    await mind.lessons.visit()
    assert await mind.all(new=True) == []
    assert ((await mind.lessons.counts()).new, (await mind.lessons.counts()).oldest_new) == (0, None)
    tea = (await mind.learnt(TEA)).lesson
    await mind.lessons.pin([tabs], pinned=True, actor=HUMAN)
    await use(mind, tabs)
    assert [lesson.id for lesson in await mind.all(new=True)] == [tea]
    await mind.learnt(TABS_AGAIN)
    assert [(lesson.id, lesson.new) for lesson in await mind.all()] == [(tabs, True), (tea, True)]
    assert (await mind.lessons.counts()).new == 2
    await mind.lessons.visit()
    assert (await mind.lessons.counts()).new == 0


# Scope


async def test_nothing_of_another_brain_is_read_or_changed(mind: Mind) -> None:
    lesson = (await mind.learnt(TABS, key=ALICE)).lesson
    await mind.learnt(TEA, key=BOB)
    before = await one(mind, lesson)
    for key in (BOB, HOME, BrainKey(user="alice1"), BrainKey(user="%"), BrainKey(user="ALICE")):
        with pytest.raises(LessonError):
            await mind.lessons.detail(lesson, key)
        with pytest.raises(LessonError):
            await mind.lessons.edit(lesson, "mine now", actor="http", key=key)
        with pytest.raises(LessonError):
            await mind.lessons.delete([lesson], actor="http", key=key)
        with pytest.raises(LessonError):
            await mind.lessons.lift([lesson], actor="http", key=key)
        with pytest.raises(LessonError):
            await mind.lessons.pin([lesson], pinned=True, actor="http", key=key)
        assert TABS not in [each.text for each in await mind.lessons.of(key)]
        assert TABS not in [each.text for each in await given(mind, TABS, key)]
        await use(mind, lesson, key=key)
        async with entered(mind.database, key) as (connection, brain):
            assert await mind.lessons.texts(connection, brain, [lesson]) == []
    assert await one(mind, lesson) == before
    assert (await mind.lessons.detail(lesson, ALICE)).lesson.text == TABS
    assert await mind.lessons.delete([lesson], actor="http", key=ALICE) == [lesson]


async def test_an_unknown_core_is_an_error_of_every_call(mind: Mind) -> None:
    nowhere = BrainKey(core="nowhere")
    for call in (
        mind.lessons.of(nowhere),
        mind.lessons.detail(1, nowhere),
        mind.lessons.edit(1, TEA, actor="http", key=nowhere),
        mind.lessons.delete([1], actor="http", key=nowhere),
    ):
        with pytest.raises(CoreUnknown):
            await call


async def test_days_are_those_of_the_settings(mind: Mind) -> None:
    async with mind_over(
        mind.database, mind.settings, mind.meaning.models()[0].embedder, lesson_days=3
    ) as quick:
        lesson = (await quick.learnt(TABS)).lesson
        assert (await one(quick, lesson)).days_left(datetime.now(UTC)) == pytest.approx(3, abs=0.01)
