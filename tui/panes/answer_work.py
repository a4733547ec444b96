"""The worker that asks: it hands on what is written some times a second, and never touches a widget."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from textual.message import Message

from engine.errors import NoctuaryError
from engine.notes.answered import Answer, Found, Piece
from tui.live import Paced

if TYPE_CHECKING:
    from textual.widget import Widget

    from engine import Engine
    from engine.notes.answered import Mark
    from engine.notes.model import SearchResult
    from tui.panes.search_text import Question


class Told(Message):
    """Something of the ask with this number; only of the newest it is worth anything."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class PassagesFound(Told):
    """The passages that the answer will be written from."""

    def __init__(self, number: int, result: SearchResult) -> None:
        super().__init__(number)
        self.result = result


class AnswerGrown(Told):
    """What is written so far."""

    def __init__(self, number: int, text: str, marks: tuple[Mark, ...]) -> None:
        super().__init__(number)
        self.text = text
        self.marks = marks


class Answered(Told):
    """The answer, whole."""

    def __init__(self, number: int, answer: Answer) -> None:
        super().__init__(number)
        self.answer = answer


class AskFailed(Told):
    """It could not be searched."""

    def __init__(self, number: int, error: NoctuaryError) -> None:
        super().__init__(number)
        self.error = error


async def ask(pane: Widget, engine: Engine, question: Question, number: int, per_second: float) -> None:
    """Ask, and tell what comes as it comes; the text so many times a second at most."""
    text, last = "", Piece("")
    paced = Paced(lambda: pane.post_message(AnswerGrown(number, text, last.marks)), per_second)
    steps = engine.asking.stream(
        question.text.strip(), path_glob=question.glob or None, folder=question.folder, mode=question.mode
    )
    try:
        async with aclosing(steps):
            async for step in steps:
                if isinstance(step, Piece):
                    text, last = text + step.text, step
                    paced.soon()
                elif isinstance(step, Found):
                    pane.post_message(PassagesFound(number, step.result))
                else:
                    # The whole takes the place of its parts; of one that broke off they are all there is.
                    pane.post_message(AnswerGrown(number, text, last.marks))
                    pane.post_message(Answered(number, step))
    except NoctuaryError as error:
        pane.post_message(AskFailed(number, error))
    finally:
        paced.stop()
