"""Answers in the search pane: asked for, written, tied to the citations, cancelled, copied; and how they look."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.hostile import MARK, PAYLOADS
from tests.scripted_llm import MODEL, ScriptedLLM
from tests.support import eventually
from tests.tui.search_console import NOTES, Console, console, write
from tests.tui.test_search_snapshots import app, steps  # noqa: F401  (a fixture)
from tui.app import NoctuaryApp
from tui.widgets.answer_text import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from engine.settings import Settings

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    return write(tmp_path / "vault", NOTES)


@pytest.fixture
async def llm() -> AsyncIterator[ScriptedLLM]:
    async with ScriptedLLM() as server:
        yield server


@asynccontextmanager
async def asking(
    settings: Settings, vault: Path, llm: ScriptedLLM | None, *, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[Console]:
    """The search pane with a model, the citations of `owl` in its list."""
    named = llm.settings("ollama") if llm is not None else {}
    async with console(replace(settings, **named), vault, size=size) as screen:
        await screen.type("owl ")
        await screen.press("down")
        assert len(screen.references) == 2
        yield screen


def answer(screen: Console) -> str:
    """The rows of the answer as text."""
    return "\n".join(row.plain for row in screen.pane.answer.lines._laid)


async def held(screen: Console, llm: ScriptedLLM) -> None:
    """Ask, and wait until some of the answer is shown."""
    llm.reply("Owls hunt ", "at night [1].", hold_after=1)
    await screen.pilot.press("a")
    await eventually(llm.held.is_set)
    await screen.shows("Owls hunt")


async def test_an_answer_is_written_with_its_marks_and_its_passages_are_numbered(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        llm.reply("Owls hunt ", "at night [", "1]. Moles too [9].", tokens=(1200, 17))
        await screen.press("a")
        assert "Owls hunt at night [1]. Moles too [9]✗." in answer(screen)
        assert "! Unsupported: [9] points to nothing: the passages are [1] to [2]." in screen.text
        assert f"1,200 + 17 tokens · ollama/{MODEL}" in screen.text
        for number, reference in enumerate(screen.references, 1):
            assert f"[{number}] {reference}" in screen.text
        assert screen.app.focused is screen.pane.list
        assert screen.current.reference == screen.references[0]


@pytest.mark.parametrize("keys", [("ctrl+g",), ("enter", "a")])
async def test_it_can_be_asked_from_the_search_line(
    settings: Settings, vault: Path, llm: ScriptedLLM, keys: tuple[str, ...]
):
    async with asking(settings, vault, llm) as screen:
        await screen.press("slash", "ctrl+u")
        llm.reply("At dawn [1].")
        await screen.pilot.press(*"robin a", *keys)
        await screen.settle()
        assert "At dawn [1]." in screen.text
        assert "robin a" in llm.asked[0].said
        assert screen.pane.input.history.entries[-1] == "robin a"


async def test_esc_cancels_then_closes_and_never_quits(settings: Settings, vault: Path, llm: ScriptedLLM):
    async with asking(settings, vault, llm) as screen:
        await held(screen, llm)
        assert "… writing" in screen.text
        assert "Esc cancels" in screen.text
        await screen.pilot.press("escape")
        await eventually(llm.hung_up.is_set)
        await screen.settle()
        assert "■ cancelled after" in screen.text
        assert "Owls hunt" in screen.text
        await screen.press("escape")
        assert "Owls hunt" not in screen.text
        assert f"[1] {screen.references[0]}" not in screen.text
        assert screen.app.is_running
        assert screen.references
        llm.reply("Again [1].")
        await screen.press("a")
        assert "Again [1]." in screen.text


async def test_a_cancelled_or_failed_answer_is_asked_for_again(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        await held(screen, llm)
        await screen.pilot.press("escape")
        await screen.settle()
        llm.gate.set()
        llm.reply(status=401)
        await screen.press("a")
        assert "✗ no answer" in screen.text
        llm.reply("At night [1].")
        await screen.press("a")
        assert "At night [1]." in screen.text


async def test_when_the_model_fails_what_was_written_and_the_citations_stay(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        llm.reply("Owls ", "hunt ", "well", cut_after=2)
        await screen.press("a")
        assert "Owls hunt" in answer(screen)
        assert "✗ " in answer(screen)
        assert "✗ no answer" in screen.text
        assert len(screen.references) == 2
        await screen.press("j")
        assert screen.pane.list.cursor == 1


async def test_without_a_model_one_line_says_so_and_how_to_set_one(settings: Settings, vault: Path):
    async with asking(settings, vault, None) as screen:
        await screen.press("a")
        assert "There is no answer: No language model is set." in screen.text
        assert "LLM_PROVIDER" in screen.text
        assert len(screen.references) == 2


async def test_without_a_question_or_evidence_nothing_is_asked(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        await screen.press("slash", "ctrl+u", "escape", "a")
        assert "There is no question yet" in screen.flash
        await screen.press("slash", *"zzqqxx", "enter", "a")
        assert "No evidence found for that query." in screen.flash
        assert not screen.pane.answer.open
        assert not llm.asked


async def test_a_goes_to_the_answer_and_back_and_the_keys_scroll_it(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        llm.reply("\n".join(f"line {number} [1]" for number in range(60)))
        await screen.press("a")
        lines = screen.pane.answer.lines
        await screen.press("a")
        assert screen.app.focused is lines
        await screen.press("g")
        assert "line 0 " in screen.text
        await screen.press("j", "j", "ctrl+d")
        assert lines.scroll_offset.y > 2
        assert "line 0 " not in screen.text
        await screen.press("G")
        assert "line 59" in screen.text
        assert screen.pane.list.cursor == 0
        await screen.press("a")
        assert screen.app.focused is screen.pane.list
        assert len(llm.asked) == 1
        await screen.press("a", "escape")
        assert screen.app.focused is screen.pane.list
        assert not screen.pane.answer.open


async def test_r_in_the_answer_has_it_written_anew(settings: Settings, vault: Path, llm: ScriptedLLM):
    async with asking(settings, vault, llm) as screen:
        llm.reply("First [1].")
        llm.reply("Second [1].")
        await screen.press("a", "a", "R")
        assert "Second [1]." in screen.text
        assert "First" not in screen.text


async def test_y_copies_the_answer_with_its_sources(
    settings: Settings, vault: Path, llm: ScriptedLLM, copied: list[str]
):
    async with asking(settings, vault, llm) as screen:
        llm.reply("At night [1].\n\x1b]52;c;x\x07")
        await screen.press("a", "a", "y")
        one, two = screen.references
        assert copied == [f"At night [1].\n␛]52;c;x␇\n\nSources:\n[1] {one}\n[2] {two}\n"]
        assert "(the answer and its sources)" in screen.flash
        await screen.press("a", "y")
        assert copied[1:] == [one]


async def test_another_question_leaves_the_answer_and_takes_its_order_away(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        llm.reply("At night [1].")
        await screen.press("a", "slash")
        await screen.type("robin ")
        assert "At night [1]." in screen.text
        llm.reply("At dawn [1].")
        await screen.press("down", "a")
        assert "At dawn [1]." in screen.text
        assert "At night" not in screen.text


async def test_a_newer_ask_ends_the_older(settings: Settings, vault: Path, llm: ScriptedLLM):
    async with asking(settings, vault, llm) as screen:
        await held(screen, llm)
        llm.gate.clear()
        await screen.pilot.press("slash", *"robin")
        llm.reply("At dawn [1].")
        await screen.pilot.press("ctrl+g")
        await eventually(llm.hung_up.is_set)
        await screen.settle()
        assert "At dawn [1]." in screen.text
        assert "Owls hunt" not in screen.text
        assert screen.pane.answer.shown.stage is Stage.DONE


async def test_a_passage_that_is_not_in_the_list_comes_into_it(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        search = screen.engine.notes.search
        found = await search("robin", k=1)

        async def other(question: str, **options: Any):
            return found if "prefix" not in options else await search(question, **options)

        screen.engine.notes.search = other  # type: ignore[method-assign]
        llm.reply("At dawn [1].")
        await screen.press("a")
        assert screen.references[0].startswith("birds/robin.md")
        assert len(screen.references) == 3
        await screen.press("R")
        assert screen.references[0].startswith("birds/robin.md")
        await screen.press("escape")
        assert not any(reference.startswith("birds/robin.md") for reference in screen.references)


async def test_the_text_is_shown_some_times_a_second_and_nothing_after_it(
    settings: Settings, vault: Path, llm: ScriptedLLM
):
    async with asking(settings, vault, llm) as screen:
        llm.reply(*[f"word{number} " for number in range(400)], "[1]")
        shown = []
        put = screen.pane.answer.lines.put
        screen.pane.answer.lines.put = lambda state: (shown.append(state), put(state))  # type: ignore[method-assign]
        began = asyncio.get_running_loop().time()
        await screen.press("a")
        took = asyncio.get_running_loop().time() - began
        assert "word399 [1]" in answer(screen)
        assert len(shown) <= 6 + took * 4
        assert screen.pane._clock is None


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (30, 10)])
async def test_a_hostile_answer_is_shown_as_symbols_and_stays_in_its_columns(
    settings: Settings, vault: Path, llm: ScriptedLLM, size: tuple[int, int]
):
    text = " [1] ".join(payload.replace("\ud800", "") for payload in PAYLOADS.values())
    async with asking(settings, vault, llm, size=size) as screen:
        llm.reply(*[text[at : at + 7] for at in range(0, len(text), 7)], finish="length")
        await screen.press("a", "a", "g")
        seen = ""
        for _ in range(12):
            assert not OBEYED.search("".join(screen.lines))
            assert {strip.cell_length for strip in screen.app.screen._compositor.render_strips()} == {size[0]}
            seen += screen.text
            await screen.press("ctrl+d")
        assert "␛" in seen
        assert MARK in seen
        assert screen.app.is_running


def answered(
    *keys: str, model: bool = True, pieces: tuple[str, ...] = ()
) -> Callable[[Any], Awaitable[None]]:
    """Index, search, and ask a model that says this; times stand still."""

    async def run(pilot: Any) -> None:
        screen = Console(pilot, pilot.app)
        assert isinstance(screen.app, NoctuaryApp)
        await steps("type owl", "down")(pilot)
        asking, language = screen.engine.asking, screen.engine.asking._language
        language._settings = replace(language._settings, llm_provider="ollama" if model else None)
        stream = asking.stream

        async def told(purpose: Any, messages: Any, *, max_tokens: int):
            from engine.models.language.base import Completion, Tokens

            for piece in pieces:
                yield piece
            yield Completion("".join(pieces), Tokens(812, 40))

        async def steady(question: str, **options: Any):
            async for step in stream(question, **options):
                yield replace(step, seconds=2.4) if hasattr(step, "seconds") else step

        language.stream = told
        asking.stream = steady
        for key in ("a", *keys):
            await screen.press(key)

    return run


ANSWER = (
    "The barn owl hunts at night and hears a mouse under the snow [1]. ",
    "The owl is also the mascot on the page [2], [4].\n\n- It does **not** hunt by day `x[1]`.\n",
)


@pytest.mark.parametrize(
    ("size", "keys", "model"),
    [((80, 24), (), True), ((80, 24), ("a",), True), ((80, 24), (), False), ((120, 40), (), True)],
    ids=["answer", "answer-in-focus", "no-model", "answer-beside"],
)
def test_the_answer_looks_as_it_did(
    snap_compare: Callable[..., bool],
    app: NoctuaryApp,  # noqa: F811
    size: tuple[int, int],
    keys: tuple[str, ...],
    model: bool,
):
    assert snap_compare(app, terminal_size=size, run_before=answered(*keys, model=model, pieces=ANSWER))
