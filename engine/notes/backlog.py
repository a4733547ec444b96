"""The embedding backlog: passages that have no vector of the model in use yet.

Vectors come behind words: a batch is started only while no job waits. The rows of a batch are locked
while their vectors are made, so processes share the backlog without leases, and a killed process
leaves no trace.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import ModelError
from engine.models.embedding.courtesy import patiently
from engine.notes import jobs, models
from engine.notes.model import EmbeddingProgress
from engine.notes.tally import Tally
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.models.embedding.base import Embedder, Vectors
    from engine.notes.model import FolderId
    from engine.notes.models import Known

BATCH = 32
"""Passages a transaction: about a second's work, so that newer notes wait no longer than that."""

IDLE_WAIT = 60.0
"""Seconds between looks when nothing wakes the loop."""

FILL_AGAIN = 60.0
"""Seconds after which a complete model is looked at again for passages that another process indexed: it reads
the whole index, in a tenth of a second for a hundred thousand passages."""

_PLAIN_WORDS = "plain words"
"""What any model can embed that works at all."""

_log = logging.getLogger("noctuary.embedding")

_NEXT = """
    SELECT embedding.passage, passage.heading, passage.text
    FROM embedding JOIN passage ON passage.id = embedding.passage
    WHERE embedding.model = %s AND embedding.state = 'pending' AND passage.orphaned_at IS NULL
    ORDER BY embedding.priority DESC, embedding.passage LIMIT %s
    FOR UPDATE OF embedding SKIP LOCKED
"""

_STORE = """
    UPDATE embedding SET state = 'embedded', vector = made.vector::halfvec, error = NULL
    FROM unnest(%s::integer[], %s::text[]) AS made (passage, vector)
    WHERE embedding.model = %s AND embedding.passage = made.passage
"""

_FAIL = "UPDATE embedding SET state = 'failed', error = %s WHERE model = %s AND passage = %s"

_FILL = """
    INSERT INTO embedding (model, passage, priority)
    SELECT %(model)s, chunk.passage, max(file.mtime_ns)
    FROM chunk JOIN file ON file.id = chunk.file
    WHERE NOT EXISTS (SELECT FROM embedding WHERE embedding.model = %(model)s
        AND embedding.passage = chunk.passage)
    GROUP BY chunk.passage
    ON CONFLICT DO NOTHING
"""

_COUNTS = """
    SELECT count(*) FILTER (WHERE state = 'embedded'), count(*) FILTER (WHERE state = 'pending'),
        count(*) FILTER (WHERE state = 'failed')
    FROM embedding WHERE model = %s
        AND NOT EXISTS (SELECT FROM passage WHERE passage.id = embedding.passage
            AND passage.orphaned_at IS NOT NULL)
"""


class Backlog:
    """Makes vectors until it is cancelled."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        foreign: Callable[[], Sequence[FolderId]] = tuple,
        *,
        to_answer: bool = True,
    ) -> None:
        """`foreign` gives the folders whose words are indexed on another machine: vectors do not wait.

        Without `to_answer` the model is not marked as one that may answer, though it have all its vectors.
        """
        self._database = database
        self._foreign = foreign
        self._to_answer = to_answer
        self._embedder = embedder
        self._wake = asyncio.Event()
        self.turn = asyncio.Event()
        """Cleared while vectors that are wanted sooner are made by another model."""
        self.turn.set()
        self._finished: deque[tuple[float, int]] = deque()
        self._filled, self._news = -math.inf, True
        self.known: Known | None = None
        """The model as the index knows it."""
        self._counts = Tally(self._count)

    async def _count(self, connection: AsyncConnection) -> tuple[int, int, int]:
        cursor = await connection.execute(_COUNTS, (self.model,))
        row = await cursor.fetchone() or (0, 0, 0)
        return row[0], row[1], row[2]

    def wake(self) -> None:
        """Look at the backlog now."""
        self._news = True
        self._wake.set()

    async def register(self) -> int:
        """Make the model known to the database, with an index for its vectors. Returns its id there.

        Raises:
            ModelError: the model cannot be reached, or its vectors cannot be kept (`models.register`).
        """
        await self._embedder.ready()
        async with self._database.connection() as connection:
            identity = await models.register(
                connection,
                name=self._embedder.model_id,
                dimension=self._embedder.dimension,
                provider=self._embedder.provider,
                model=self._embedder.model,
            )
            await models.remember_distance(connection, identity, self._embedder.default_distance)
            self.known = await models.by_id(connection, identity)
        return identity

    @property
    def model(self) -> int | None:
        """The model's id in the index, once it is known there."""
        return self.known.id if self.known else None

    async def fill(self) -> int:
        """Queue what lacks a vector of this model: after a change of model, or of another process's doing.

        Returns how many passages.
        """
        self._filled, self._news = time.monotonic(), False
        async with self._database.transaction() as connection:
            await connection.execute(
                "SELECT set_config('synchronous_commit', 'off', true),"
                " pg_advisory_xact_lock(hashtextextended('noctuary:index', 0))"
            )
            cursor = await connection.execute(_FILL, {"model": self.model})
        return cursor.rowcount

    async def run(self) -> None:
        """Embed until cancelled, newest notes first, waiting while words are still to be indexed."""
        while True:
            await self.turn.wait()
            self._wake.clear()
            if await self.step():
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(IDLE_WAIT):  # wait_for of Python 3.11 can lose a cancellation
                    await self._wake.wait()

    async def run_until_idle(self) -> None:
        """Embed until nothing is left that no other process has in hand."""
        while await self.step():
            pass

    async def step(self) -> bool:
        """One batch. Returns whether there was anything that could be done now."""
        async with self._database.connection() as connection:
            if await jobs.waiting(connection, foreign=self._foreign()):
                return False
        async with self._database.transaction() as connection:
            cursor = await connection.execute(_NEXT, (self.model, BATCH))
            rows = await cursor.fetchall()
            if rows:
                await connection.execute("SELECT set_config('synchronous_commit', 'off', true)")
                await self._embed(connection, rows)
        if not rows:
            return await self._at_rest()
        self._finished.append((time.monotonic(), len(rows)))
        return True

    async def _at_rest(self) -> bool:
        """Nothing waits: see that nothing is missing either. Returns whether something was.

        A process that uses another model queues what it indexes for that one alone.
        """
        if self.known is None:
            return False
        known, long_ago = self.known, time.monotonic() - self._filled > FILL_AGAIN
        if (known.complete_at is None or (self._news and long_ago)) and await self.fill():
            return True
        if known.complete_at is None and self._to_answer:
            async with self._database.connection() as connection:
                if await models.complete(connection, known.id):
                    _log.info("%s has all its vectors", known.name)
        return False

    async def _embed(self, connection: AsyncConnection, rows: Sequence[tuple[int, str, str]]) -> None:
        texts = [embedded_text(heading, text) for _, heading, text in rows]
        try:
            with patiently():
                vectors = await self._embedder.passages(texts)
        except ModelError as error:
            if len(rows) == 1:
                await self._fail(connection, rows[0][0], error)
                return
            for row in rows:
                await self._embed(connection, [row])
        else:
            self._check_model()
            await self._store(connection, [row[0] for row in rows], vectors)

    def _check_model(self) -> None:
        """A model that was pulled anew in the midst of the work is another: its vectors are not kept as this
        one's.

        Raises:
            ModelError: it is; whoever runs the backlog registers it then.
        """
        if self.known is not None and self._embedder.model_id != self.known.name:
            raise ModelError(f"The model is not {self.known.name} any more, but {self._embedder.model_id}.")

    async def _fail(self, connection: AsyncConnection, passage: int, error: ModelError) -> None:
        """Mark a passage the model cannot embed; a model that embeds nothing is not the passage's fault.

        Raises:
            ModelError: the model fails on plain words too.
        """
        await self._embedder.passages([_PLAIN_WORDS])
        _log.error("a passage could not be embedded: %s", error)
        await connection.execute(_FAIL, (str(error), self.model, passage))

    async def _store(self, connection: AsyncConnection, passages: Sequence[int], vectors: Vectors) -> None:
        written = await asyncio.to_thread(lambda: [vector_text(vector) for vector in vectors.tolist()])
        await connection.execute(_STORE, (list(passages), written, self.model))

    def rate(self) -> float:
        """Passages a second over the last minute, 0 when nothing was embedded in it."""
        now = time.monotonic()
        while self._finished and now - self._finished[0][0] > 60:
            self._finished.popleft()
        if len(self._finished) < 2:
            return 0.0
        span = self._finished[-1][0] - self._finished[0][0]
        return sum(count for _, count in list(self._finished)[1:]) / span if span > 0 else 0.0

    async def progress(self, connection: AsyncConnection, *, exact: bool = True) -> EmbeddingProgress:
        """How far the vectors are; without `exact` perhaps a moment ago."""
        embedded, pending, failed = await self._counts.get(connection, exact=exact)
        rate = self.rate() if pending else 0.0
        return EmbeddingProgress(
            named(self._embedder), embedded, pending, failed, rate, pending / rate if rate else None
        )


def named(embedder: Embedder) -> str:
    """A model's id, or its name while only the model itself knows more."""
    try:
        return embedder.model_id
    except ModelError:
        return embedder.model


def embedded_text(heading: str, text: str) -> str:
    """What is embedded for a passage: its heading path, then its text."""
    return f"{heading.replace(chr(10), ' > ')}\n{text}" if heading else text
