"""The gate: a turn is prepared, an answer verified, a turn recorded. No model is called in any of them.

What decides is deterministic: similarity × confidence for what is recalled, a table of self-attributes for
the overwrite check, phrases for corrections. A turn is masked before anything is kept of it, and is one
transaction: evidence, packet, attributes and token together, or nothing.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.brain.channels import channel_of
from engine.errors import TurnError
from engine.memory import attributes, constitutions, packets, turntokens
from engine.memory.brains import entered
from engine.memory.coherence import coherence, support
from engine.memory.keeping import Said, Turn, aside, contradicted, keep, known_attributes, named, sayable
from engine.memory.messages import messages
from engine.memory.model import (
    LONGEST_KEY,
    Prepared,
    Recalled,
    Recorded,
    Verified,
)
from engine.memory.terms import asked_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.memory.lessons import Lessons
    from engine.memory.meaning import Meaning, Meant
    from engine.memory.model import BrainId, BrainKey, Contradiction
    from engine.memory.recalling import Recall
    from engine.settings import Settings

EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
"""No turn is older. The database would keep times before the first year, which Python cannot read."""


class Gate:
    """prepare, verify and record."""

    def __init__(
        self, database: Database, settings: Settings, meaning: Meaning, recall: Recall, lessons: Lessons
    ) -> None:
        self._database = database
        self._settings = settings
        self._meaning = meaning
        self._recall = recall
        self._lessons = lessons

    async def recall(self, key: BrainKey, text: str, k: int | None = None) -> Recalled:
        """What memory has to say to a text: lessons, which count as used, and at most `k` turns."""
        said = await said_as(text, "The text")
        meaning = await self._meaning.of(asked_of(said.text))
        async with entered(self._database, key) as (connection, brain):
            return await self._recalled(connection, brain, said.text, meaning, k)

    async def prepare(
        self,
        key: BrainKey,
        text: str,
        *,
        constitution: str | None = None,
        channel: str | None = None,
        door: str = "",
    ) -> Prepared:
        """Context for a turn: constitution, lessons, sources, and a token to record its answer with.

        `constitution` names a file of the configuration folder; `channel` the conversation the turn belongs
        to (None: that of the day).

        Raises:
            TurnError: the text or a name is none, or too long.
            CoreUnknown: there is no such core.
        """
        said = await said_as(text, "The turn")
        channel = _channel(channel)
        rules = await asyncio.to_thread(constitutions.named, self._settings.paths.config_at, constitution)
        refusal = await aside(len(said.text), rules.refusal, said.text)
        meaning = await self._meaning.of(asked_of(said.text))
        async with entered(self._database, key, make=refusal is None) as (connection, brain):
            found = await self._recalled(connection, brain, said.text, meaning)
            known = await known_attributes(connection, brain)
            contradiction = await aside(len(said.text), contradicted, known, said.text)
            token = None
            if refusal is None:
                token = await turntokens.give_out(
                    connection,
                    brain,
                    said.text,
                    masked=said.masked,
                    channel=channel,
                    door=door,
                    sources=[source.packet for source in found.sources],
                    lessons=[lesson.id for lesson in found.lessons],
                    coherence=found.coherence,
                    minutes=self._settings.turn_minutes,
                )
        told = messages(said.text, rules, found.lessons, found.sources, contradiction)
        return Prepared(told, found, refusal is None, refusal, token, contradiction)

    async def verify(self, key: BrainKey, answer: str, turn_token: str | None = None) -> Verified:
        """What memory says of an answer: whether it contradicts what the user said of himself, and how well
        it is supported. Nothing is kept, and the token stays as it is.

        Raises:
            TurnError: the answer is none, or too long.
            TurnGone: the token is not valid.
        """
        said = await said_as(answer, "The answer")
        meant, _ = await self._meaning.of(asked_of(said.text))
        async with entered(self._database, key) as (connection, brain):
            if turn_token is not None:
                await turntokens.look(connection, brain, turn_token)
            sources, _ = await self._recall.sources(connection, brain, said.text, meant)
            known = await known_attributes(connection, brain)
        claimed = await aside(len(said.text), _claimed, known, said.text)
        reason = f"The answer contradicts what is known. {claimed}." if claimed else None
        return Verified(claimed is None, reason, coherence(support(sources)), claimed)

    async def record(
        self, key: BrainKey, turn_token: str, answer: str, *, occurred_at: datetime | None = None
    ) -> Recorded:
        """Keep a prepared turn with its answer, and use its token up. The same again gives the same.

        `occurred_at` is when the turn was, not before `EARLIEST` and not later than now; without a time zone
        it is UTC.

        Raises:
            TurnError: the answer is none, or too long.
            TurnGone: the token is not valid here, has expired, or was used with another answer.
        """
        if not turn_token:
            raise TurnError("There is no turn token: the turn was declined, or never prepared.")
        said = await said_as(answer, "The answer")
        async with entered(self._database, key) as (connection, brain):
            turn = await turntokens.look(connection, brain, turn_token, answer=answer)
            if turn.packet is not None:
                known = (await packets.by_id(connection, brain, [turn.packet]))[turn.packet]
                return Recorded(
                    turn.packet, known.kind, known.confidence, recalled=known.recalled, again=True
                )
            recalled = await self._given(connection, brain, turn.sources, turn.lessons)
            kept = Turn(
                Said(turn.input, turn.masked),
                said,
                clamped(occurred_at),
                origin=turn.door,
                recalled=recalled,
            )
            recorded = await self._keep(connection, brain, kept, turn.channel)
            await turntokens.use(connection, brain, turn, answer, recorded.packet)
        return recorded

    async def remember(
        self,
        key: BrainKey,
        text: str,
        *,
        response: str = "",
        speaker: str = "",
        channel: str | None = None,
        occurred_at: datetime | None = None,
        door: str = "",
    ) -> Recorded:
        """Keep something that was said, without a prepared turn.

        Raises:
            TurnError: the text or a name is none, or too long.
        """
        said = await said_as(text, "The text")
        answered = await said_as(response, "The answer") if response else None
        channel = _channel(channel)
        async with entered(self._database, key, make=True) as (connection, brain):
            turn = Turn(said, answered, clamped(occurred_at), named(speaker), door)
            return await self._keep(connection, brain, turn, channel)

    async def _keep(
        self, connection: AsyncConnection, brain: BrainId, turn: Turn, channel: str | None
    ) -> Recorded:
        into = await channel_of(connection, brain, channel or f"turns {turn.at:%Y-%m-%d}")
        models = [model.id for model in self._meaning.models()]
        (recorded,) = await keep(connection, brain, into, [turn], models)
        return recorded

    async def _recalled(
        self,
        connection: AsyncConnection,
        brain: BrainId,
        text: str,
        meaning: tuple[Meant | None, str],
        k: int | None = None,
    ) -> Recalled:
        meant, trouble = meaning
        sources, notes = await self._recall.sources(connection, brain, text, meant, k)
        lessons = await self._lessons.given(connection, brain, meant)
        if lessons:
            await self._lessons.used(connection, brain, [lesson.id for lesson in lessons])
        if trouble:
            notes = (f"Recalled by words alone: {trouble}", *notes)
        return Recalled(tuple(lessons), tuple(sources), coherence(support(sources)), tuple(notes))

    async def _given(
        self, connection: AsyncConnection, brain: BrainId, sources: Sequence[int], lessons: Sequence[int]
    ) -> list[str]:
        """The texts that were recalled for a turn."""
        texts: list[str] = []
        if sources:
            rows = await packets.by_id(connection, brain, sources)
            texts = [text for row in rows.values() for text in (row.input, row.response) if text]
        return texts + (await self._lessons.texts(connection, brain, lessons) if lessons else [])


async def said_as(text: str, what: str) -> Said:
    """As `sayable`, in a thread where it is long.

    Raises:
        TurnError: it is nothing, or too long.
    """
    return await aside(len(text), sayable, text, what)


def _claimed(known: Mapping[str, str], answer: str) -> Contradiction | None:
    """What an answer says of the user that differs from what he said of himself."""
    return attributes.conflict(known, attributes.to_first_person(answer))


def clamped(at: datetime | None) -> datetime:
    """A time as it is kept: in UTC, not later than now, and not before `EARLIEST`."""
    now = datetime.now(UTC)
    if at is None:
        return now
    try:
        told = (at.replace(tzinfo=UTC) if at.tzinfo is None else at).astimezone(UTC)
    except OverflowError:  # a zone that leads out of the calendar
        told = at.replace(tzinfo=UTC)
    return min(max(told, EARLIEST), now)


def _channel(channel: str | None) -> str | None:
    """The name of a channel as it is kept.

    Raises:
        TurnError: it cannot be one.
    """
    if channel is None:
        return None
    if not channel.strip() or len(channel) > LONGEST_KEY or packets.storable(channel) != channel:
        raise TurnError(
            "The channel cannot be named like that.", remedy=f"Use 1 to {LONGEST_KEY} characters."
        )
    return named(channel)
