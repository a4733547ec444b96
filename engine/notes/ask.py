"""Ask: an answer written by a language model from the passages a search finds, and from nothing else.

Three outcomes: no passage, and the model is not called; passages alone, where no model is set or it failed;
passages and an answer. What was found is told first and is never lost. One trace is left of each ask.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from engine import prompts
from engine.errors import LanguageError, NoctuaryError, OutputError
from engine.language import Purpose
from engine.models.language.base import MOST_TOKENS, Completion, Finish, Message, Role
from engine.notes import fencing, marks
from engine.notes.answered import Answer, AskStep, Found, Outcome, Piece
from engine.notes.traced import Trace, TraceKind
from engine.text.fencing import blunted

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from engine.language import Language
    from engine.notes import Notes
    from engine.notes.answered import SearchOptions
    from engine.notes.fencing import Fenced
    from engine.notes.model import SearchResult
    from engine.notes.traces import Traces
    from engine.prompts import Prompt
    from engine.settings import Settings

PARTS = {"system": ("unknown",), "unknown": (), "user": ("passages", "question")}
"""What a prompt must have: its parts, each with the places that are filled in."""

LOCAL_TOKENS = 2_000
"""Tokens of passages given to a model in the house: with prompt and answer they fit the 4,096 of context that
small models have, and that Ollama asks for."""

HOSTED_TOKENS = 24_000
"""The same for the large models of the providers, which hold several times as much."""

CANCELLED = "cancelled"


def check_prompt(version: str) -> None:
    """See that the prompt of PROMPT_VERSION can be used.

    Raises:
        PromptError: it is not there, or lacks a part.
    """
    prompts.load(version, "ask", PARTS)


class Trimmed:
    """Text in pieces, without the blanks at both ends of the whole and without carriage returns."""

    def __init__(self) -> None:
        self._held = ""
        self._begun = False

    def add(self, piece: str) -> str:
        """What of the text can be told now: blanks wait for what follows them."""
        text = self._held + piece.replace("\r", "")
        if not self._begun:
            text = text.lstrip()
        told = text.rstrip()
        self._held = text[len(told) :]
        self._begun = self._begun or bool(told)
        return told


class Asking:
    """Answers questions from the notes."""

    def __init__(self, notes: Notes, language: Language, settings: Settings, traces: Traces) -> None:
        self._notes = notes
        self._language = language
        self._settings = settings
        self._traces = traces

    async def ask(self, question: str, **options: Unpack[SearchOptions]) -> Answer:
        """The answer, whole. The options are those of a search.

        Raises:
            QueryError: an option cannot be read.
            FolderError: the folder is none a system can have.
            ModelError: the mode is vector and the embedding model does not answer.
        """
        steps = self.stream(question, **options)
        async with aclosing(steps):
            async for step in steps:
                if isinstance(step, Answer):
                    return step
        raise AssertionError("an ask ends with its answer")  # pragma: no cover

    async def stream(self, question: str, **options: Unpack[SearchOptions]) -> AsyncGenerator[AskStep, None]:
        """The same step by step: once what was found, then the answer in pieces, at last the whole.

        Close it to cancel: the model is told so at once.
        """
        start = time.perf_counter()
        result = await self._notes.search(question, trace=False, **options)
        answer = self._begun(question, result)
        ended = replace(answer, trouble=CANCELLED)
        try:
            yield Found(result)
            if answer.model is not None:
                async with aclosing(self._written(answer)) as steps:
                    async for step in steps:
                        if isinstance(step, Piece):
                            yield step
                        else:
                            answer = step
            ended = answer
        finally:
            ended = answer = replace(ended, seconds=time.perf_counter() - start)
            self._traces.note(_trace(ended, self._traces.door))
        yield answer

    def _begun(self, question: str, result: SearchResult) -> Answer:
        """The answer as far as the search knows it; its `model` says whether one shall be asked."""
        answer = Answer(
            question,
            Outcome.NO_EVIDENCE,
            result.citations,
            result.seconds,
            notes=result.notes,
            path_matches=result.path_matches,
        )
        if not result.citations:
            return answer
        if not self._language.provider:
            return replace(answer, outcome=Outcome.CITATIONS, unasked=self._language.why_not)
        return replace(
            answer,
            outcome=Outcome.CITATIONS,
            prompt_version=self._settings.prompt_version,
            provider=self._language.provider,
            model=self._language.model,
        )

    async def _written(self, begun: Answer) -> AsyncGenerator[Piece | Answer, None]:
        """Pieces of the answer, then the whole; or, when the model failed, what was found and why."""
        answer, trimmed, written = begun, Trimmed(), ""
        try:
            prompt = prompts.load(self._settings.prompt_version, "ask", PARTS)
            fenced = fencing.fence(begun.citations, self._budget())
            references = [each.reference for each in begun.citations[: fenced.given]]
            messages = _messages(prompt, fenced, begun.question)
            pieces = self._language.stream(Purpose.ASK, messages, max_tokens=MOST_TOKENS)
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, Completion):
                        answer = _with_tokens(answer, piece)
                        yield self._whole(answer, prompt, fenced, written, piece.finish)
                    elif told := trimmed.add(piece):
                        written += told
                        yield Piece(told, marks.resolved(written, references))
        except NoctuaryError as error:
            yield replace(answer, trouble=error.message, remedy=error.remedy)

    def _budget(self) -> int:
        """Tokens of passages that the model is given."""
        return LOCAL_TOKENS if self._language.local else HOSTED_TOKENS

    def _whole(self, answer: Answer, prompt: Prompt, fenced: Fenced, text: str, finish: Finish) -> Answer:
        """The answer with its marks resolved.

        Raises:
            LanguageError: it was refused, or is empty.
        """
        name = self._language.name
        if finish is Finish.REFUSED:
            raise LanguageError(f"{name} refused to answer.", remedy="Ask in other words.")
        if not text:
            why = " within its token limit" if finish is Finish.LENGTH else ""
            raise OutputError(f"{name} wrote no answer{why}.", remedy="Try again, or set another CHAT_MODEL.")
        declined = _same(text, prompt.part("unknown"))
        found = marks.resolved(text, [each.reference for each in answer.citations[: fenced.given]])
        return replace(
            answer,
            outcome=Outcome.ANSWER,
            text=text,
            marks=found,
            unsupported=() if declined else marks.unsupported(found, fenced.given),
            notes=(*answer.notes, *_limits(fenced, len(answer.citations), finish)),
            truncated=finish is Finish.LENGTH,
            declined=declined,
        )


def _trace(answer: Answer, door: str) -> Trace:
    return Trace(
        TraceKind.ASK,
        door,
        answer.question,
        len(answer.citations),
        answer.seconds,
        answer.outcome is Outcome.ANSWER and not answer.declined,
        answer.prompt_version,
        answer.provider,
        answer.model or None,
        answer.prompt_tokens or None,
        answer.completion_tokens or None,
        answer.trouble,
    )


def _messages(prompt: Prompt, fenced: Fenced, question: str) -> list[Message]:
    """What the model is told. Passages are never in the system's turn, which has our authority."""
    return [
        Message(Role.SYSTEM, prompt.part("system", unknown=prompt.part("unknown"))),
        Message(Role.USER, prompt.part("user", passages=fenced.text, question=blunted(question.strip()))),
    ]


def _with_tokens(answer: Answer, completion: Completion) -> Answer:
    tokens = completion.tokens
    return replace(answer, prompt_tokens=tokens.prompt, completion_tokens=tokens.completion)


def _limits(fenced: Fenced, found: int, finish: Finish) -> list[str]:
    """Sentences on what limits the answer."""
    notes = []
    if fenced.given < found:
        notes.append(f"The model was given the best {fenced.given:,} of {found:,} passages: no more fit.")
    if fenced.cut:
        notes.append("The model was given only the beginning of the passage: no more fits.")
    if finish is Finish.LENGTH:
        notes.append("The answer ends where its token limit was reached.")
    return notes


def _same(text: str, phrase: str) -> bool:
    """Whether the text is this phrase, but for what surrounds it."""
    return _bare(text) == _bare(phrase)


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).strip("\"'*_.!\u201c\u201d ")
