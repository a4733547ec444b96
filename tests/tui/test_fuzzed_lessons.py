"""Any text in the lessons pane: no fault, nothing that steers a terminal, and every row as wide as the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import LessonError
from engine.memory.lessons import Lessons
from engine.memory.model import BrainId, SynthesisStep
from engine.memory.synthesis import Synthesis
from tests.tui.made_up_lessons import make_up
from tests.tui.test_fuzzed_panes import cycle, examples, look, press, rest, screen  # noqa: F401  (a fixture)
from tui.panes.lessons import LessonsPane

if TYPE_CHECKING:
    import pytest

    from tests.tui.desk import Desk


async def test_lessons_their_turns_and_tombstones(
    screen: Desk,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number, example in enumerate(examples()):
        one = cycle(example)
        make_up(monkeypatch, example, example[:5], next(one))
        await screen.pilot.resize_terminal(*((80, 24), (120, 40))[number % 2])
        await press(screen, "5")
        for keys in ("R g", "j d space", "enter", "G", "escape e", "escape D", "escape dollar_sign", "n"):
            await press(screen, keys)
            look(screen, example)
        for keys in ("t R", "enter", "escape t", "n R", "j n", "down down", "escape 0", "n v v"):
            await press(screen, keys)
            look(screen, example)
        for _ in example:
            await press(screen, "j")
            look(screen, example)


async def test_what_learning_tells(
    screen: Desk,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await press(screen, "5")
    for example in examples(2):
        one = cycle(example)

        async def fail(*_arguments: object, text: str = next(one), **_options: object) -> None:
            raise LessonError(text, remedy=text)

        monkeypatch.setattr(Synthesis, "run_all", fail)
        monkeypatch.setattr(Lessons, "delete", fail)
        monkeypatch.setattr(Lessons, "detail", fail)
        for keys in ("s", "D", "L 1 enter", "escape", "R"):
            await press(screen, keys)
            look(screen, example)
        step = SynthesisStep(BrainId(1), next(one), next(one), 1, 2, next(one))
        pane = screen.pane(LessonsPane)
        pane.post_message(pane.Learnt(next(one)))
        pane.post_message(pane.Step(step))
        await rest(screen)
        look(screen, example)
