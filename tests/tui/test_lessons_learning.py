"""Learning from the lessons pane: by the configured model, and by the hand of the person at the keyboard."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.errors import SynthesisBusy
from engine.memory.model import BrainId, SynthesisRun, SynthesisStep
from engine.memory.synthesis import Synthesis
from tests.support import eventually
from tests.tui.desk import NOON
from tests.tui.lessons_desk import clustered, learnt, review, said
from tui.panes.lessons_text import View
from tui.panes.lessons_work import outcome_line

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from engine.settings import Settings

RUN = SynthesisRun(
    1, BrainId(1), "default", "", "model", "human", "completed", NOON, NOON, 9, 6, 2, 1, 1, 1, 1
)


async def test_a_waiting_cluster_is_distilled_by_hand_with_its_turns_in_sight(settings: Settings):
    async with review(settings) as screen:
        await clustered(screen.engine.database, "Please use pnpm.", "I said pnpm, not npm!")
        await clustered(screen.engine.database, "What is the weather?", "And tomorrow?")
        await screen.until(lambda: "waiting 2" in screen.text)
        await screen.press("n")
        assert screen.pane.view is View.WAITING
        await screen.press("n")
        assert "Please use pnpm." in screen.text
        assert "I said pnpm, not npm!" in screen.text
        await screen.press(*"Use pnpm.", "enter")
        assert "is learned" in screen.flash
        assert len(screen.rules) == 1
        await screen.press("0")
        assert "Nothing durable in cluster" in screen.text
        await screen.press("0", "y")
        assert "No cluster waits." in screen.text
        await screen.press("v", "v")
        assert screen.rules == ["Use pnpm."]
        assert [lesson.sources for lesson in await screen.all()] == [2]


async def test_what_was_deleted_is_not_learned_again_by_hand_either(settings: Settings):
    async with review(settings, "Use pnpm.") as screen:
        await screen.press("d", "dollar_sign", "y")
        await clustered(screen.engine.database, "Please use pnpm.", "I said pnpm, not npm!")
        await screen.press("n", "n", *"Use pnpm.", "enter")
        assert "Not learned. Its like, L1, was deleted." in screen.flash
        assert await screen.living() == []


async def test_the_inbox_leads_to_the_clusters_that_wait(settings: Settings):
    async with review(settings) as screen:
        await screen.press("1")
        await clustered(screen.engine.database, "Please use pnpm.", error="It answered junk [/")
        await screen.until(lambda: "Clusters of turns that wait to be distilled" in screen.text)
        await screen.press("enter")
        assert screen.pane.view is View.WAITING
        assert "✗ It answered junk [/" in screen.text


async def test_the_inbox_leads_to_what_expires_first(settings: Settings):
    async with review(settings) as screen:
        await learnt(screen.engine.database, "Stays.", left=20)
        await learnt(screen.engine.database, "Expires.", left=2)
        await screen.press("1")
        await screen.until(lambda: "Lessons that expire within a week" in screen.text)
        await screen.press("enter")
        assert screen.rules == ["Expires.", "Stays."]


async def test_without_a_model_learning_says_what_waits(settings: Settings):
    async with review(settings) as screen:
        await screen.press("s")
        assert "Nothing was said since the last run" in screen.text
        await said(screen.engine.database, "Please use pnpm.")
        await screen.press("s")
        assert "1 turn waits for a vector" in screen.text
        await screen.press("escape")
        assert "waits for a vector" not in screen.text


async def test_learning_tells_how_far_it_is_and_what_came_of_it(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    go_on = asyncio.Event()

    async def run_all(_self: Synthesis, *, actor: str, on_step: Callable[[SynthesisStep], object]):
        assert actor == "human"
        on_step(SynthesisStep(BrainId(1), "default", "", 3, 12, "Distilling"))
        await go_on.wait()
        return [RUN, replace(RUN, created=0, failed=0, waiting=3, notes=("No model is set.",))]

    monkeypatch.setattr(Synthesis, "run_all", run_all)
    async with review(settings) as screen:
        await screen.pilot.press("s")
        await eventually(
            lambda: "Learning · default · Distilling · 3 of 12 clusters · Esc cancels" in screen.text
        )
        go_on.set()
        await screen.settle()
        told = " ".join(line.strip() for line in screen.lines[2:5])
        assert "✓ 2 learned · 2 strengthened · 2 held back by tombstones · 2 held nothing" in told
        assert "1 failed · 3 clusters wait · No model is set." in told


async def test_learning_is_cancelled_by_escape_or_by_its_own_key(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
):
    cancelled = []

    async def run_all(_self: Synthesis, **_options: object) -> list[SynthesisRun]:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)
        return []

    monkeypatch.setattr(Synthesis, "run_all", run_all)
    async with review(settings) as screen:
        for number, key in enumerate(("escape", "s"), 1):
            await screen.pilot.press("s")
            await eventually(lambda: "Learning…" in screen.text)
            await screen.press(key)
            assert len(cancelled) == number
            assert "Cancelled: what was learned until then stays" in screen.text


async def test_that_another_process_learns_is_told(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    async def run_all(_self: Synthesis, **_options: object) -> list[SynthesisRun]:
        raise SynthesisBusy("Another process is learning in this brain now.")

    monkeypatch.setattr(Synthesis, "run_all", run_all)
    async with review(settings) as screen:
        await screen.press("s")
        assert "✗ Synthesis: Another process is learning" in screen.text


def test_a_run_that_was_broken_off_is_told_with_its_reason():
    broken = replace(RUN, created=0, strengthened=0, tombstoned=0, nothing=0, error="It took too long.")
    assert outcome_line([broken]) == "0 learned · 1 failed · It took too long."
