"""The tools of the notes: search and ask."""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, cast

from engine.doors import narrowing
from engine.doors.mcp import arguments, results
from engine.doors.mcp.tool import Tool
from engine.notes.answered import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.doors.mcp.tool import Call, Progress, Result
    from engine.notes.answered import SearchOptions

PROGRESS_SECONDS = 1.0
"""Between two signs of life while an answer is written; clients give up on a call that gives none."""

ASKED = "asked"
"""What the question is called, whatever its parameter is."""


def _asked(call: Call) -> tuple[Engine, str, SearchOptions]:
    """The engine, the question and what narrows it."""
    options = {name: value for name, value in call.given.items() if name != ASKED}
    return call.engine, call.given[ASKED], cast("SearchOptions", options)


async def _search(call: Call) -> Result:
    engine, asked, options = _asked(call)
    found = await engine.notes.search(asked, **options)
    sources = await narrowing.checked(engine, found.citations)
    remarks = [*found.notes, *await _why_nothing(engine, options, sources, path_matches=found.path_matches)]
    return results.found(sources, remarks)


async def _ask(call: Call) -> Result:
    engine, asked, options = _asked(call)
    answer = await _written(engine, asked, options, call.progress)
    sources = await narrowing.checked(engine, answer.citations)
    remarks = [*answer.notes, *await _why_nothing(engine, options, sources, path_matches=answer.path_matches)]
    return results.answered(answer, sources, remarks)


async def _written(engine: Engine, asked: str, options: SearchOptions, progress: Progress) -> Answer:
    """The whole answer, with signs of life while it is written."""
    told, steps = time.monotonic(), 0
    async with aclosing(engine.asking.stream(asked, **options)) as stream:
        async for step in stream:
            if isinstance(step, Answer):
                return step
            steps += 1
            if time.monotonic() - told >= PROGRESS_SECONDS:
                told = time.monotonic()
                await progress(steps, "The answer is being written.")
    raise AssertionError("an ask ends with its answer")  # pragma: no cover


async def _why_nothing(
    engine: Engine, options: SearchOptions, sources: Sequence[object], *, path_matches: bool
) -> list[str]:
    if sources:
        return []
    why = await narrowing.why_nothing(engine, options, path_matches=path_matches, name="the path")
    return [why] if why else []


NOTE_TOOLS = (
    Tool(
        "search",
        "Search the notes",
        "Find passages in the user's Markdown notes, by words and by meaning. Each comes with its note's"
        " path, its exact lines and whether it still stands there. Words in double quotes match just so.",
        {
            "query": arguments.text(
                ASKED, "What to look for: words, or a question in plain language.", required=True
            ),
            **arguments.NARROWING,
        },
        results.SEARCH_SCHEMA,
        _search,
        read_only=True,
        idempotent=True,
    ),
    Tool(
        "ask",
        "Ask the notes",
        "Answer a question from the user's Markdown notes and from nothing else. The user's own language"
        " model writes the answer and marks its sources; where none is set, the passages come alone.",
        {
            "question": arguments.text(ASKED, "The question, in plain language.", required=True),
            **arguments.NARROWING,
        },
        results.ASK_SCHEMA,
        _ask,
        read_only=True,
        idempotent=True,
    ),
)
