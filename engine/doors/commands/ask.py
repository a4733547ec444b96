"""`noctuary ask`: an answer with its sources, as it is written, or as JSON."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Unpack

import click

from engine.doors import exits, narrowing, output, parameters, session
from engine.doors.commands import search
from engine.notes.answered import Answer, Outcome, Piece
from engine.notes.model import NO_EVIDENCE

if TYPE_CHECKING:
    from engine import Engine
    from engine.notes.answered import SearchOptions
    from engine.notes.model import Citation, Freshness

    Sources = list[tuple[Citation, Freshness]]

STATUS = {
    Outcome.NO_EVIDENCE: exits.FOUND_NOTHING,
    Outcome.CITATIONS: exits.DONE,
    Outcome.ANSWER: exits.DONE,
}


@click.command()
@click.argument("question", nargs=-1, required=True)
@narrowing.options
@parameters.JSON
def ask(question: tuple[str, ...], *, as_json: bool, **narrowed: Unpack[SearchOptions]) -> int:
    """Answer a question from the notes, with its sources.

    The language model of LLM_PROVIDER reads the passages that a search finds and writes the answer; [1] in
    it is the first of the sources below it. Without a model the passages are cited. Exit status 1 when
    nothing is found (no model is asked then), 2 when the model failed; what was found is still printed.
    """
    asked = narrowing.question(question)

    async def work(engine: Engine) -> int:
        if as_json:
            answer = await engine.asking.ask(asked, **narrowed)
            output.dump(as_object(answer, await narrowing.checked(engine, answer.citations)))
        else:
            answer = await _told(engine, asked, narrowed)
        for sentence in answer.notes:
            output.note(sentence)
        if answer.outcome is Outcome.NO_EVIDENCE:
            await narrowing.explain_nothing(engine, narrowed, path_matches=answer.path_matches)
        if answer.unasked:
            output.note(f"There is no answer: {answer.unasked}")
        if answer.trouble:
            output.complain("Answer", answer.trouble, answer.remedy)
            return exits.ERROR
        return STATUS[answer.outcome]

    return session.run(work, application="noctuary ask")


def as_object(answer: Answer, sources: Sources) -> dict[str, Any]:
    """An answer for JSON; its citations are those of a search, the first is what [1] points to."""
    return {
        "question": answer.question,
        "outcome": answer.outcome,
        "answer": answer.text,
        "citations": [search.as_object(*item, explain=False) for item in sources],
        "marks": answer.marks,
        "unsupported": answer.unsupported,
        "declined": answer.declined,
        "truncated": answer.truncated,
        "trouble": f"{answer.trouble} {answer.remedy}".strip() or answer.unasked or None,
        "prompt_version": answer.prompt_version,
        "provider": answer.provider,
        "model": answer.model or None,
        "tokens": {"prompt": answer.prompt_tokens, "completion": answer.completion_tokens},
        "seconds": answer.seconds,
        "notes": answer.notes,
    }


async def _told(engine: Engine, asked: str, narrowed: SearchOptions) -> Answer:
    """Print the answer as it is written, and what belongs below it."""
    written = False
    async with aclosing(engine.asking.stream(asked, **narrowed)) as steps:
        async for step in steps:
            if isinstance(step, Piece):
                written = True
                output.say_piece(step.text)
            elif isinstance(step, Answer):
                answer = step
    if written:
        output.say()
        output.say()
    _print_below(answer, await narrowing.checked(engine, answer.citations))
    return answer


def _print_below(answer: Answer, sources: Sources) -> None:
    if answer.outcome is Outcome.NO_EVIDENCE:
        output.say(NO_EVIDENCE)
    elif answer.outcome is Outcome.CITATIONS:
        for source in sources:
            search.show(*source)
    else:
        output.say("Sources:")
        for number, source in enumerate(sources, 1):
            output.say(f"[{number}] {search.reference(*source)}")
        if answer.unsupported:
            output.say()
            for sentence in answer.unsupported:
                output.say(f"Unsupported: {sentence}")
