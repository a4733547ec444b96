"""The lessons pane: a review of what was learned, thrown out and brought back, by the keyboard alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.hostile import MARKUP, PAYLOADS, STEERING, STEERS
from tests.support import eventually
from tests.tui.lessons_desk import ALICE, learnt, review, said
from tui.panes.lessons_text import View
from tui.panes.window_pane import WINDOW
from tui.screens.dialog import Confirm

if TYPE_CHECKING:
    from engine.settings import Settings

RULES = ("Use pnpm, not npm.", "Run the tests first.", "Never push on Friday.", "Indent with tabs.")


# Deleting


async def test_fifty_lessons_are_reviewed_by_a_key_each_and_deleted_after_one_question(settings: Settings):
    rules = [f"Rule number {number}." for number in range(50)]
    wrong = {rules[number] for number in (0, 7, 30, 49)}
    async with review(settings, *rules) as screen:
        for rule in rules:
            assert screen.here == rule
            await screen.pilot.press("d" if rule in wrong else "j")
        await screen.press("dollar_sign")
        assert "Delete 4 lessons?" in screen.text
        assert len(await screen.living()) == 50
        await screen.press("y")
        assert set(rules) - set(await screen.living()) == wrong
        assert screen.rules == [rule for rule in rules if rule not in wrong]


async def test_d_marks_and_u_unmarks_and_both_go_on(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("d", "d", "d")
        assert screen.signs == ["D", "D", "D", ""]
        assert screen.here == RULES[3]
        assert "3 to delete: $ does it" in screen.text
        await screen.press("g", "j", "u")
        assert screen.signs == ["D", "", "D", ""]
        assert screen.here == RULES[2]
        await screen.press("d")
        assert screen.signs == ["D", "", "D", ""]
        assert screen.here == RULES[3]


async def test_the_key_that_asked_never_deletes_and_a_no_deletes_nothing(settings: Settings):
    also = replace(settings, keys={"confirm.yes": "y,dollar_sign"})
    async with review(also, *RULES) as screen:
        await screen.press("d", "dollar_sign", "dollar_sign", "enter")
        assert isinstance(screen.app.screen, Confirm)
        await screen.press("escape")
        assert len(await screen.living()) == len(RULES)
        assert screen.signs == ["D", "", "", ""]
        await screen.press("backspace", "escape")
        assert len(await screen.living()) == len(RULES)
        assert screen.signs == ["D", "", "", ""]


async def test_what_was_deleted_comes_back_commit_by_commit(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("U")
        assert "Nothing was deleted here" in screen.flash
        await screen.press("d", "dollar_sign", "y", "d", "d", "dollar_sign", "y")
        assert await screen.living() == [RULES[3]]
        assert "U brings back" in screen.flash
        await screen.press("U")
        assert await screen.living() == sorted(RULES[1:])
        await screen.press("U")
        assert await screen.living() == sorted(RULES)
        assert screen.rules == list(RULES)
        assert screen.signs == [""] * 4
        await screen.press("U")
        assert "Nothing was deleted here" in screen.flash


async def test_with_marks_d_and_u_take_all_of_them(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("space", "space", "d")
        assert screen.signs == ["D", "D", "", ""]
        assert not len(screen.pane.marks)
        await screen.press("asterisk", "d")
        assert screen.signs == ["D"] * 4
        await screen.press("asterisk", "u")
        assert screen.signs == [""] * 4
        await screen.press("dollar_sign")
        assert "Nothing is marked for deletion: d marks the lesson" in screen.flash


async def test_all_lessons_are_marked_also_those_outside_the_window(settings: Settings):
    lessons = WINDOW + 30
    async with review(settings, *(f"Rule {number}." for number in range(lessons))) as screen:
        assert len(screen.rules) == WINDOW
        assert f"lessons 1-{WINDOW} of {lessons}" in screen.text
        await screen.press("asterisk", "d", "dollar_sign")
        assert f"Delete {lessons} lessons?" in screen.text
        await screen.press("y")
        assert await screen.living() == []
        await screen.press("U")
        assert len(await screen.living()) == lessons


async def test_the_last_of_more_lessons_than_the_window_holds_is_reached(settings: Settings):
    lessons = WINDOW + 30
    async with review(settings, *(f"Rule {number}." for number in range(lessons))) as screen:
        await screen.press("G")
        assert screen.here == f"Rule {lessons - 1}."
        await screen.press("g")
        assert screen.here == "Rule 0."


async def test_marks_for_deletion_outlive_a_filter(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("d", "slash")
        await screen.type("friday")
        await screen.press("enter")
        assert screen.rules == [RULES[2]]
        assert "1 to delete" in screen.text
        await screen.press("d", "escape")
        assert screen.signs == ["D", "", "D", ""]


async def test_a_lesson_is_deleted_by_its_reference_and_never_shown(settings: Settings):
    async with review(settings, *RULES[1:], size=(120, 40)) as screen:
        await learnt(screen.engine.database, "The password of the boss is tulip.", age=9)
        [secret] = [each for each in await screen.all() if "tulip" in each.text]
        await screen.press("slash")
        await screen.type("friday")
        await screen.press("enter", "D")
        await screen.type(f"{secret.reference} names a password")
        assert "tulip" not in screen.text
        await screen.press("enter")
        assert f"{secret.reference} deleted" in screen.flash
        assert "tulip" not in screen.text
        [gone] = [each for each in await screen.all() if each.deleted_at is not None]
        assert (gone.id, gone.reason, gone.deleted_by) == (secret.id, "names a password", "human")
        await screen.press("U")
        assert secret.text in await screen.living()


@pytest.mark.parametrize(
    ("typed", "told"), [("why", "Name a lesson"), ("L999999", "nothing was deleted"), ("", "Type it first")]
)
async def test_a_reference_to_nothing_deletes_nothing_and_stays_typed(
    settings: Settings, typed: str, told: str
):
    async with review(settings, *RULES) as screen:
        await screen.press("D", *typed, "enter")
        assert told in screen.text
        assert screen.asking._input.value == typed
        await screen.press("escape")
        assert await screen.living() == sorted(RULES)


# Changing


async def test_a_lesson_gets_another_wording_in_place(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("j", "e")
        assert screen.asking._input.value == RULES[1]
        await screen.press("end", *" Always.", "enter")
        assert screen.rules == [RULES[0], f"{RULES[1]} Always.", *RULES[2:]]
        assert screen.here == f"{RULES[1]} Always."
        assert "says now: Run the tests first. Always." in screen.flash
        await screen.press("e", *" Not this.", "escape")
        assert f"{RULES[1]} Always." in await screen.living()


async def test_pinned_lessons_are_told_and_let_go_by_the_same_key(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("p")
        assert "pinned" in screen.pane.list.rows[0].cells
        await screen.press("space", "space", "p")
        assert [("pinned" in row.cells) for row in screen.pane.list.rows] == [True, True, False, False]
        await screen.press("asterisk", "p", "asterisk", "p")
        assert not any("pinned" in row.cells for row in screen.pane.list.rows)


# Looking


async def test_the_filter_asks_for_more_than_words(settings: Settings):
    async with review(settings, *RULES) as screen:
        database = screen.engine.database
        await learnt(database, "Alice likes short answers.", key=ALICE, age=40, uses=2)
        await learnt(database, "Nobody knows why.", left=-2)
        for typed, rules in {
            "user:alice": ["Alice likes short answers."],
            "age:>30d": ["Alice likes short answers."],
            "expired": ["Nobody knows why."],
            "unused tabs": ["Indent with tabs."],
            "core:nowhere": [],
        }.items():
            await screen.press("slash")
            await screen.type(typed)
            assert screen.rules == rules
            await screen.press("escape")
        await screen.press("slash")
        await screen.type("age:old")
        assert "age: takes a number of days" in screen.text
        await screen.type(" u$dp")
        assert await screen.living() == sorted([*RULES, "Alice likes short answers.", "Nobody knows why."])


async def test_the_order_goes_round(settings: Settings):
    async with review(settings) as screen:
        await learnt(screen.engine.database, "Goes first.", left=2, uses=5)
        await learnt(screen.engine.database, "Goes last.", left=25, uses=0)
        await screen.press("R")
        assert screen.rules == ["Goes last.", "Goes first."]
        await screen.press("o")
        assert "first to expire first" in screen.text
        assert screen.rules == ["Goes first.", "Goes last."]
        assert screen.here == "Goes first."
        await screen.press("o")
        assert "least used first" in screen.text
        assert screen.rules == ["Goes last.", "Goes first."]


async def test_what_is_new_stays_new_until_the_pane_is_left(settings: Settings):
    async with review(settings, *RULES) as screen:
        assert "+ 4 new" in screen.text
        await screen.press("R")
        assert "+ 4 new" in screen.text
        await screen.press("1")
        assert "Lessons learned since your last visit" not in screen.text
        await learnt(screen.engine.database, "This came later.")
        await screen.until(lambda: "Lessons learned since your last visit" in screen.text)
        await screen.press("enter")
        assert screen.pane.filter_text == "new"
        assert screen.rules == ["This came later."]
        await screen.press("escape")
        assert [row.cells[0] for row in screen.pane.list.rows] == [" +", "  ", "  ", "  ", "  "]


async def test_the_visit_ends_with_the_console(settings: Settings):
    async with review(settings, *RULES) as screen:
        assert "+ 4 new" in screen.text
        await screen.pilot.press("q")
    async with review(settings) as screen:
        assert screen.rules == list(RULES)
        assert "new" not in screen.lines[1]


async def test_lessons_of_another_process_appear_and_the_cursor_stays(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("j", "d", "k")
        await learnt(screen.engine.database, "Just learned.", age=0)
        await screen.until(lambda: "Just learned." in screen.text)
        assert screen.here == RULES[1]
        assert screen.signs == ["", "", "D", "", ""]


async def test_below_the_list_is_told_who_said_what_and_what_was_recalled(settings: Settings):
    async with review(settings, size=(120, 40)) as screen:
        packets = await said(screen.engine.database, "Use pnpm, please.", response="I will use pnpm.")
        await learnt(screen.engine.database, RULES[0], packets=packets)
        await screen.until(lambda: "I will use pnpm." in screen.text)
        assert "Use pnpm, please." in screen.text
        assert "user · #talk" in screen.text
        assert "learned by model tests" in screen.text
        assert "from 1 turn" in screen.text
        await screen.pilot.resize_terminal(80, 24)
        await screen.settle()
        assert "I will use pnpm." not in screen.text
        await screen.press("J")
        assert "Enter shows the turns" in screen.flash
        await screen.press("enter")
        assert "I will use pnpm." in screen.text
        await screen.press("escape")
        assert screen.here == RULES[0]


async def test_brains_are_told_apart_where_there_are_several(settings: Settings):
    async with review(settings, *RULES, size=(120, 40)) as screen:
        assert "Brain" not in screen.text
        await learnt(screen.engine.database, "Alice likes short answers.", key=ALICE)
        await screen.until(lambda: "Brain" in screen.text)
        assert any("default/alice" in line and "short answers" in line for line in screen.lines)


async def test_without_lessons_it_is_told_how_they_come_about(settings: Settings):
    async with review(settings) as screen:
        assert "No lessons yet." in screen.text
        assert "noctuary import" in screen.text
        assert "No language model is set" in screen.text
        await screen.press("slash")
        await screen.type("owl")
        assert "No row has “owl”." in screen.text


# Tombstones


async def test_tombstones_are_listed_with_their_reason_and_lifted(settings: Settings):
    async with review(settings, *RULES) as screen:
        [lesson] = [each for each in await screen.all() if each.text == RULES[2]]
        await screen.engine.memory.lessons.delete([lesson.id], actor="human", reason="a joke")
        await screen.press("t")
        assert screen.pane.view is View.TOMBSTONES
        assert screen.rules == [RULES[2]]
        assert "a joke" in screen.text
        await screen.press("d")
        assert "It was deleted: u brings it back" in screen.flash
        await screen.press("u")
        assert "brought back" in screen.flash
        assert "Nothing was deleted." in screen.text
        await screen.press("t")
        assert screen.rules == list(RULES)


async def test_each_view_keeps_its_place(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.press("j", "j", "space", "v")
        assert screen.pane.view is View.WAITING
        assert not len(screen.pane.marks)
        await screen.press("v", "v")
        assert screen.here == RULES[3]
        assert list(screen.pane.marks) != []


# Whatever comes


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "?")[:1500]


async def test_no_lesson_steers_the_terminal_or_is_taken_for_markup(settings: Settings):
    payloads = [_storable(payload) for payload in PAYLOADS.values()]
    worst = _storable("".join({**STEERING, **MARKUP}.values()))
    async with review(settings, size=(120, 40)) as screen:

        def look() -> None:
            assert not any(STEERS.search(line) for line in screen.lines)

        packets = await said(screen.engine.database, *payloads, response=worst)
        await learnt(screen.engine.database, *payloads, key=ALICE)
        await learnt(screen.engine.database, worst, packets=packets)
        await screen.until(lambda: len(screen.rules) == len(payloads) + 1)
        for keys in (
            ("enter",),
            ("G",),
            ("escape", "e"),
            ("escape", "d", "t"),
            ("v", "dollar_sign", "y"),
            ("t",),
        ):
            await screen.press(*keys)
            look()
        await screen.press("t")
        for _ in payloads:
            await screen.press("j")
            look()


async def test_a_flood_of_keys_deletes_nothing_that_was_not_confirmed(settings: Settings):
    async with review(settings, *RULES) as screen:
        await screen.pilot.press(*["dollar_sign", "dollar_sign", "d", "u", "p", "o", "t", "v"] * 10)
        await eventually(lambda: not screen.app.busy)
        assert await screen.living() == sorted(RULES)
