"""Vectors of packets and lessons, made in the background: what was said last, first.

The rows of a batch are locked while their vectors are made, so processes share the backlog without leases,
and a killed process leaves no trace. All brains are gone through; vectors can always be made again.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.memory.brains import everything
from engine.memory.packets import packet_text
from engine.models.embedding.courtesy import patiently
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.memory.meaning import Meaning, Served

EMBEDDER = "memory embedder"
"""The background service that makes vectors of packets and lessons."""

BATCH = 32
"""Texts a transaction: about a second's work."""

IDLE_WAIT = 60.0
"""Seconds between looks when nothing wakes the loop."""

LONGEST = 16_000
"""Characters of a turn that its vector is made of: a pasted file of a megabyte would hold up everything else
for minutes, and one vector cannot tell what all of it says.
"""

_log = logging.getLogger("noctuary.memory")

_NEXT_PACKETS = """
    SELECT waiting.brain, waiting.packet, input.text, coalesce(response.text, '')
    FROM packet_embedding AS waiting
    JOIN packet ON packet.brain = waiting.brain AND packet.id = waiting.packet
    JOIN entry AS input ON input.brain = packet.brain AND input.id = packet.input
    LEFT JOIN entry AS response ON response.brain = packet.brain AND response.id = packet.response
    WHERE waiting.model = %s AND waiting.state = 'pending'
    ORDER BY waiting.packet DESC LIMIT %s FOR UPDATE OF waiting SKIP LOCKED
"""

_NEXT_LESSONS = """
    SELECT waiting.brain, waiting.lesson, lesson.text, ''
    FROM lesson_embedding AS waiting
    JOIN lesson ON lesson.brain = waiting.brain AND lesson.id = waiting.lesson
    WHERE waiting.model = %s AND waiting.state = 'pending'
    ORDER BY waiting.lesson DESC LIMIT %s FOR UPDATE OF waiting SKIP LOCKED
"""

_STORE_PACKETS = """
    UPDATE packet_embedding AS kept SET state = 'embedded', vector = made.vector::halfvec, error = NULL
    FROM unnest(%s::integer[], %s::integer[], %s::text[]) AS made (brain, id, vector)
    WHERE kept.model = %s AND kept.brain = made.brain AND kept.packet = made.id
"""

_STORE_LESSONS = """
    UPDATE lesson_embedding AS kept SET state = 'embedded', vector = made.vector::halfvec, error = NULL
    FROM unnest(%s::integer[], %s::integer[], %s::text[]) AS made (brain, id, vector)
    WHERE kept.model = %s AND kept.brain = made.brain AND kept.lesson = made.id
"""

_FAIL_PACKET = """
    UPDATE packet_embedding SET state = 'failed', error = %s WHERE model = %s AND brain = %s AND packet = %s
"""

_FAIL_LESSON = """
    UPDATE lesson_embedding SET state = 'failed', error = %s WHERE model = %s AND brain = %s AND lesson = %s
"""

_KINDS = (
    (_NEXT_LESSONS, _STORE_LESSONS, _FAIL_LESSON),
    (_NEXT_PACKETS, _STORE_PACKETS, _FAIL_PACKET),
)

_PLAIN_WORDS = "plain words"
"""What any model can embed that works at all."""


class Embeddings:
    """Makes vectors until it is cancelled, of every model that answers or is in the making."""

    def __init__(self, database: Database, meaning: Meaning) -> None:
        self._database = database
        self._meaning = meaning
        self._filled: set[int] = set()
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Make vectors as they are wanted.

        Raises:
            ModelError: a model cannot be reached; whoever runs this tries again later.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            while True:
                self._wake.clear()
                if await self.step():
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_WAIT):  # wait_for of Python 3.11 can lose a cancellation
                        await self._wake.wait()

    async def _follow(self) -> None:
        topics = ("packet", "lesson", "model", "chosen_model")
        async for _ in self._database.feed.subscribe(*topics):
            self._wake.set()

    async def run_until_idle(self) -> None:
        """Make all vectors that no other process has in hand.

        Raises:
            ModelError: a model cannot be reached.
        """
        while await self.step():
            pass

    async def step(self) -> bool:
        """One batch of each kind and model. Returns whether there was anything to do."""
        worked = False
        for model in self._meaning.models():
            if model.id not in self._filled:
                async with self._database.connection() as connection:
                    await connection.execute("SELECT fill_memory_embeddings(%s::smallint)", (model.id,))
                self._filled.add(model.id)
            for following, store, fail in _KINDS:
                worked |= await self._batch(model, following, store, fail)
        return worked

    async def _batch(self, model: Served, following: str, store: str, fail: str) -> bool:
        async with everything(self._database) as connection:
            cursor = await connection.execute(following.encode(), (model.id, BATCH))
            rows = await cursor.fetchall()
            if rows:
                await connection.execute("SELECT set_config('synchronous_commit', 'off', true)")
                await self._embed(connection, model, rows, store, fail)
        return bool(rows)

    async def _embed(
        self,
        connection: AsyncConnection,
        model: Served,
        rows: Sequence[tuple[int, int, str, str]],
        store: str,
        fail: str,
    ) -> None:
        texts = [packet_text(said, answered)[:LONGEST] for _, _, said, answered in rows]
        try:
            await model.embedder.ready()
            _check(model)
            with patiently():
                vectors = await model.embedder.passages(texts)
        except ModelError as error:
            if len(rows) == 1:
                await model.embedder.passages([_PLAIN_WORDS])  # what embeds nothing is not the text's fault
                _log.error("a turn or lesson could not be embedded: %s", error)
                await connection.execute(fail.encode(), (str(error), model.id, *rows[0][:2]))
                return
            for row in rows:
                await self._embed(connection, model, [row], store, fail)
            return
        _check(model)
        written = await asyncio.to_thread(lambda: [vector_text(vector) for vector in vectors.tolist()])
        brains, ids = [row[0] for row in rows], [row[1] for row in rows]
        await connection.execute(store.encode(), (brains, ids, written, model.id))


def _check(model: Served) -> None:
    """A model that was pulled anew is another: its vectors are not kept as this one's.

    Raises:
        ModelError: it is another now.
    """
    if model.embedder.model_id != model.name:
        raise ModelError(f"The model is not {model.name} any more, but {model.embedder.model_id}.")
