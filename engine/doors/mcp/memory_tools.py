"""The tools of memory: a turn's way, what is recalled, what was learned.

Whose memory is meant the call says, or else the settings.
Nothing here makes a core. What is recalled is handed over as data, with a notice that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doors import remembering
from engine.doors.mcp import memory_results
from engine.doors.mcp.arguments import Parameter, number, text, time
from engine.doors.mcp.tool import Tool
from engine.errors import QueryError
from engine.memory.model import LONGEST_KEY, LONGEST_TURN

if TYPE_CHECKING:
    from engine.doors.mcp.arguments import Parameters
    from engine.doors.mcp.tool import Call, Result, Work
    from engine.memory.model import BrainKey

DOOR = "mcp"

MOST_ROWS = 200
"""Lessons or turns that are listed by one call."""

MOST_ID = 2**31 - 1

WHOSE = {
    "core": text(
        "core",
        "The isolated part of memory that is meant; `cores` lists them. Left out: as the user has set it.",
        longest=LONGEST_KEY,
    ),
    "user": text(
        "user",
        "The end user whose memory is meant. Left out: as the user has set it, else the core's own.",
        longest=LONGEST_KEY,
    ),
}

TOKEN = text("turn_token", "The token that `prepare` gave.", longest=LONGEST_KEY, required=True)
CHANNEL = text("channel", "The conversation it belongs to. Left out: that of the day.", longest=LONGEST_KEY)
WHEN = time("occurred_at", "When it was said, as in ISO 8601, if not now. Never later than now.")


def _turn(option: str, description: str, *, required: bool = True) -> Parameter:
    return text(option, description, longest=LONGEST_TURN, required=required)


def _lesson(name: str, value: object) -> int:
    if isinstance(value, str) and (lesson := remembering.lesson_id(value)):
        return lesson
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST_ID:
        return value
    raise QueryError(f"{name!r} has to be a lesson's number, such as 12 or L12.")


def _rules(name: str, value: object) -> list[tuple[int, str | None]]:
    try:
        return remembering.rules(value)
    except ValueError as error:
        raise QueryError(f"{name!r} {error}.") from error


LESSON = Parameter(
    "lesson",
    "The lesson's number, as `lessons` lists it: 12 or L12.",
    {"type": ["integer", "string"]},
    _lesson,
    required=True,
)

RULES = Parameter(
    "rules",
    "For each cluster one imperative sentence; null where it holds nothing that lasts.",
    {
        "type": "array",
        "maxItems": remembering.MOST_RULES,
        "items": {
            "type": "object",
            "properties": {"cluster_id": {"type": "integer"}, "text": {"type": ["string", "null"]}},
            "required": ["cluster_id", "text"],
        },
    },
    _rules,
    required=True,
)


def _key(call: Call) -> BrainKey:
    """Whose memory a call means; what is left of its arguments is for the engine."""
    settings = call.engine.settings
    return remembering.key(settings, call.given.pop("core", None), call.given.pop("user", None))


async def _recall(call: Call) -> Result:
    key = _key(call)
    return memory_results.recalled(await call.engine.memory.recall(key, **call.given))


async def _remember(call: Call) -> Result:
    key = _key(call)
    return memory_results.recorded(await call.engine.memory.remember(key, door=DOOR, **call.given))


async def _prepare(call: Call) -> Result:
    key = _key(call)
    return memory_results.prepared(await call.engine.memory.prepare(key, door=DOOR, **call.given))


async def _record(call: Call) -> Result:
    key = _key(call)
    return memory_results.recorded(await call.engine.memory.record(key, **call.given))


async def _verify(call: Call) -> Result:
    key = _key(call)
    return memory_results.verified(await call.engine.memory.verify(key, **call.given))


async def _lessons(call: Call) -> Result:
    key = _key(call)
    return memory_results.lessons(await call.engine.memory.lessons.of(key, **call.given))


async def _lesson_delete(call: Call) -> Result:
    key = _key(call)
    lesson, reason = call.given["lesson"], call.given.get("reason", "")
    gone = await call.engine.memory.lessons.delete([lesson], actor=call.actor, reason=reason, key=key)
    return memory_results.deleted(lesson, before=not gone)


async def _synthesize_prepare(call: Call) -> Result:
    key = _key(call)
    return memory_results.batch(await call.engine.memory.synthesis.prepare(key, actor=call.actor))


async def _synthesize_record(call: Call) -> Result:
    key = _key(call)
    outcomes, run = await call.engine.memory.synthesis.record(
        key, call.given["token"], call.given["rules"], actor=call.actor
    )
    return memory_results.distilled(outcomes, run)


async def _memory(call: Call) -> Result:
    key = _key(call)
    recent = await call.engine.memory.recent(key, **call.given)
    return memory_results.packets(recent, await call.engine.memory.metrics(key))


async def _cores(call: Call) -> Result:
    return memory_results.cores(await call.engine.memory.cores())


def _tool(name: str, title: str, description: str, parameters: Parameters, work: Work, **hints: bool) -> Tool:
    takes = parameters if name == "cores" else {**parameters, **WHOSE}
    return Tool(name, title, description, takes, memory_results.SCHEMAS[name], work, **hints)


MEMORY_TOOLS = (
    _tool(
        "recall",
        "Recall what is known",
        "What memory knows of a text from earlier turns: standing rules first, then the turns themselves, the"
        " best first. Nothing is an answer: it is not known here. Rules that are given count as used.",
        {
            "text": _turn("text", "What to recall: a question or a topic, in plain language."),
            "k": number("k", "How many turns at most. Left out: as the user has set it, 3 at first."),
        },
        _recall,
        idempotent=True,
    ),
    _tool(
        "remember",
        "Remember something",
        "Keep something that was said, so that it is recalled later. For a whole turn of yours use `prepare`"
        " and `record`. Keys and passwords in it are masked.",
        {
            "text": _turn("text", "What the user said, in his words."),
            "response": _turn("response", "What was answered to it.", required=False),
            "speaker": text("speaker", "Who said it, if not the user.", longest=LONGEST_KEY),
            "channel": CHANNEL,
            "occurred_at": WHEN,
        },
        _remember,
    ),
    _tool(
        "prepare",
        "Prepare a turn",
        "What to know before answering the user: rules, what is known, and whether he contradicts it. Gives a"
        " token for `record`; calling it again is harmless. No model is called.",
        {
            "input": _turn("text", "What the user says now, in full."),
            "constitution": text("constitution", "A set of rules of the user's, by its name."),
            "channel": CHANNEL,
        },
        _prepare,
        idempotent=True,
    ),
    _tool(
        "record",
        "Record a turn",
        "Keep a prepared turn with the answer that was given, so that it is recalled and learned from. The"
        " same again changes nothing.",
        {"turn_token": TOKEN, "answer": _turn("answer", "The answer that was given."), "occurred_at": WHEN},
        _record,
        idempotent=True,
    ),
    _tool(
        "verify",
        "Verify an answer",
        "Hold an answer against what is known before giving it: whether it contradicts what the user said of"
        " himself, and how well it is supported. Nothing is kept.",
        {
            "answer": _turn("answer", "The answer as it would be given."),
            "turn_token": text("turn_token", "The token that `prepare` gave, if any.", longest=LONGEST_KEY),
        },
        _verify,
        read_only=True,
        idempotent=True,
    ),
    _tool(
        "lessons",
        "List what was learned",
        "The standing rules that were learned from many turns, those that were learned most often first.",
        {"limit": number("limit", "How many at most. Left out: 50.", most=MOST_ROWS)},
        _lessons,
        read_only=True,
        idempotent=True,
    ),
    _tool(
        "lesson_delete",
        "Delete a lesson",
        "Throw out a rule that should not have been learned. Its like is not learned again, until the user"
        " lifts that. Only when the user asks for it.",
        {"lesson": LESSON, "reason": text("reason", "Why, for the user's audit.", longest=1_000)},
        _lesson_delete,
        destructive=True,
        idempotent=True,
    ),
    _tool(
        "synthesize_prepare",
        "Prepare learning",
        "Group recent turns that are about the same, for you to distil: answer each cluster's prompt by the"
        " system text, then call `synthesize_record` with the token. Without one there is nothing to learn.",
        {},
        _synthesize_prepare,
    ),
    _tool(
        "synthesize_record",
        "Record what was learned",
        "Keep the rules that you distilled. What is no rule is passed over; the others are kept.",
        {
            "synthesis_token": text(
                "token", "The token that `synthesize_prepare` gave.", longest=LONGEST_KEY, required=True
            ),
            "lessons": RULES,
        },
        _synthesize_record,
    ),
    _tool(
        "memory",
        "Look at the memory",
        "The turns that were kept last, newest first, and counts of what is in this memory.",
        {"limit": number("limit", "How many turns at most. Left out: 20.", most=MOST_ROWS)},
        _memory,
        read_only=True,
        idempotent=True,
    ),
    _tool(
        "cores",
        "List the cores",
        "The isolated parts of memory there are. Only the user makes one, by `noctuary cores add`.",
        {},
        _cores,
        read_only=True,
        idempotent=True,
    ),
)
