"""Keeping turns: what each is to the memory is decided in their order, and all are kept in one go."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from engine.brain.channels import NewEntry
from engine.errors import TurnError
from engine.memory import attributes, packets
from engine.memory.corrections import is_correction
from engine.memory.echo import is_echo
from engine.memory.model import CONFIDENCE, LONGEST_KEY, LONGEST_TURN, Kind, Recorded
from engine.memory.secrets import mask
from engine.models.embedding.courtesy import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from psycopg import AsyncConnection

    from engine.memory.model import BrainId, Contradiction

_ATTRIBUTES = "SELECT key, value FROM attribute WHERE brain = %s"

_LEARN = """
    INSERT INTO attribute (brain, key, value, packet)
    SELECT %s, new.key, new.value, new.packet
    FROM unnest(%s::text[], %s::text[], %s::integer[]) AS new (key, value, packet)
    ON CONFLICT (brain, key) DO UPDATE SET value = EXCLUDED.value, packet = EXCLUDED.packet
"""

SMALL = 2_000
"""Characters that are read in a millisecond."""

P = ParamSpec("P")
T = TypeVar("T")

# Of two that keep turns of one brain at once, the second knows what the first found out of the user.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('noctuary:attributes:' || %s, 0))"


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody said, as it may be kept: without what the database cannot hold, and without secrets."""

    text: str
    masked: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn to be kept. `recalled` are the texts that had been recalled for it; `key` is what an import
    knows it by again.
    """

    said: Said
    answered: Said | None
    at: datetime
    speaker: str = ""
    origin: str = ""
    key: str | None = None
    recalled: Sequence[str] = ()


@dataclass(slots=True)
class _Decided:
    """What turns are to the memory, and what they tell of the user: key to (value, place of the turn)."""

    packets: list[packets.NewPacket] = field(default_factory=list)
    contradictions: list[Contradiction | None] = field(default_factory=list)
    learned: dict[str, tuple[str, int]] = field(default_factory=dict)


def sayable(text: str, what: str) -> Said:
    """What was said, as it may be kept. It may be called in a thread: a megabyte is looked through.

    Raises:
        TurnError: it is nothing, or too long.
    """
    if len(text) > LONGEST_TURN:
        raise TurnError(f"{what} has more than {LONGEST_TURN:,} characters.", remedy="Shorten it.")
    if not text.strip():
        raise TurnError(f"{what} is empty.")
    masked = mask(packets.storable(text))
    return Said(masked.text, masked.count)


def named(name: str) -> str:
    """A name of a speaker or a channel as it may be kept: those that a program gives may hold anything."""
    return mask(packets.storable(name)).text[:LONGEST_KEY]


async def known_attributes(connection: AsyncConnection, brain: BrainId) -> dict[str, str]:
    """What the user of a brain last said of himself: attribute to value."""
    cursor = await connection.execute(_ATTRIBUTES, (brain,))
    return dict(await cursor.fetchall())


async def keep(
    connection: AsyncConnection,
    brain: BrainId,
    channel: int,
    turns: Sequence[Turn],
    models: Sequence[int],
) -> list[Recorded]:
    """Keep turns in a channel, in their order, each to get its vector of each of `models`.

    Vectors that nobody waits for are made between turns, not beside them.
    """
    with QUESTIONS.asked():
        return await _keep(connection, brain, channel, turns, models)


async def _keep(
    connection: AsyncConnection,
    brain: BrainId,
    channel: int,
    turns: Sequence[Turn],
    models: Sequence[int],
) -> list[Recorded]:
    await connection.execute(_ONE_AT_A_TIME, (str(brain),))
    known = await known_attributes(connection, brain)
    size = sum(len(turn.said.text) + (len(turn.answered.text) if turn.answered else 0) for turn in turns)
    decided, rows = await aside(size, _written, turns, known)
    ids = await packets.keep(connection, brain, channel, rows, models)
    if decided.learned:
        values = [value for value, _ in decided.learned.values()]
        places = [ids[place] for _, place in decided.learned.values()]
        await connection.execute(_LEARN, (brain, list(decided.learned), values, places))
    return [
        Recorded(
            packet,
            made.kind,
            CONFIDENCE[made.kind],
            made.input.masked + (made.response.masked if made.response else 0),
            made.recalled,
            contradiction=contradiction,
        )
        for packet, made, contradiction in zip(ids, decided.packets, decided.contradictions, strict=True)
    ]


def _written(turns: Sequence[Turn], known: dict[str, str]) -> tuple[_Decided, str]:
    """What turns are, and the rows that keep them."""
    decided = _decide(turns, known)
    return decided, packets.written(decided.packets)


async def aside(size: int, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Do work on so many characters: in a thread, unless it is done sooner than a thread would begin."""
    if size <= SMALL:
        return work(*arguments, **named)
    return await asyncio.to_thread(work, *arguments, **named)


def _decide(turns: Sequence[Turn], known: dict[str, str]) -> _Decided:
    """What each turn is, given those before it."""
    decided = _Decided()
    for place, turn in enumerate(turns):
        contradiction = contradicted(known, turn.said.text)
        echo = is_echo(turn.said.text, turn.recalled)
        kind = kind_of(turn.said.text, contradiction)
        decided.packets.append(_packet(turn, kind, echo=echo))
        decided.contradictions.append(contradiction)
        if kind is Kind.OVERWRITE or echo:
            continue  # what is not believed, or was not said now, teaches nothing
        for each in attributes.attributes(turn.said.text):
            known[each.key] = each.value
            decided.learned[each.key] = (each.value, place)
    return decided


def contradicted(known: Mapping[str, str], text: str) -> Contradiction | None:
    """What of a text differs from what is known of the user. A correction contradicts nothing."""
    return None if not known or is_correction(text) else attributes.conflict(known, text)


def kind_of(text: str, contradiction: Contradiction | None) -> Kind:
    """An explicit correction, an unconfirmed overwrite, or an ordinary turn."""
    if is_correction(text):
        return Kind.CORRECTION
    return Kind.OVERWRITE if contradiction is not None else Kind.RAW


def _packet(turn: Turn, kind: Kind, *, echo: bool) -> packets.NewPacket:
    said, answered = turn.said, turn.answered
    entry = NewEntry(
        "user", said.text, turn.at, turn.speaker, turn.origin, turn.key, recalled=echo, masked=said.masked
    )
    response = None
    if answered is not None:
        response = NewEntry(
            "assistant",
            answered.text,
            turn.at,
            origin=turn.origin,
            recalled=is_echo(answered.text, turn.recalled),
            masked=answered.masked,
        )
    return packets.NewPacket(entry, response, kind, echo)
