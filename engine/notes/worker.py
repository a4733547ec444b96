"""The worker: claims waiting jobs, prepares them in a thread and writes them, batch after batch.

While one batch is written the next is prepared. A batch that the database refuses is taken apart
and tried file by file, so one bad note never stops the others.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.errors import DatabaseUnavailable
from engine.notes import index, jobs
from engine.notes.prepare import Content, Faulty, Gone, Prepared, Unready, prepare
from engine.services import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.database import Database
    from engine.notes.jobs import Claimed
    from engine.notes.model import FolderId, JobId

BATCH = 256
"""Jobs a transaction: large enough that postings pack well, small enough that a save during a first
indexing waits less than a second for its turn."""

ANALYSE_BUSY, ANALYSE_IDLE = 500, 100
"""Files this worker wrote after which it looks whether the planner's statistics hold still: while there is
more to do, and when the queue is empty."""

GROWN_BUSY, GROWN_IDLE = 2.0, 1.2
"""How much the index may grow or shrink, all workers together, before they do not."""

UNREADY_DELAY = 0.5
"""Seconds until a note that was being written is looked at again: doubled each time."""

UNREADY_TRIES = 3
"""Times a note may be found being written; then it is taken as far as it can be read, or fails. A log
that grows for ever must hold up neither the vectors nor who waits for the end."""

IDLE_WAIT = 30.0
"""Seconds between looks at the queue when nothing wakes the worker, nothing is delayed and nobody's lease
ends: a safety net only."""

# What is due for longer than a moment and was not claimed is in somebody's hands: its end wakes us.
_NEXT_CHANCE = """
    SELECT extract(epoch FROM least(
        (SELECT min(not_before) FROM job
            WHERE status = 'pending' AND not_before > now() - interval '1 second'),
        (SELECT min(lease_until) FROM job WHERE status = 'processing')) - now())
"""

# Whether the index has another size than when it was analysed last, and nobody else sees to it now.
_GROWN = """
    WITH size AS (
        SELECT greatest(1, (SELECT count(*) FROM file)) AS now,
            (SELECT greatest(1, reltuples) FROM pg_class WHERE oid = 'file'::regclass) AS before
    )
    SELECT greatest(now / before, before / now) >= %(most)s
        AND pg_try_advisory_xact_lock(hashtextextended('noctuary:statistics', 0))
    FROM size
"""

_log = logging.getLogger("noctuary.worker")


def worker_name() -> str:
    """A name no other worker has or had: host, process and a random part."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"


class Worker:
    """Runs jobs until it is cancelled. `models` gives the ids of the embedding models in use, `foreign` the
    folders whose jobs are left to another machine.
    """

    def __init__(
        self,
        database: Database,
        *,
        lease: float,
        models: Callable[[], Sequence[int]],
        foreign: Callable[[], Sequence[FolderId]] = tuple,
    ) -> None:
        self.name = worker_name()
        self._database = database
        self._lease = lease
        self._models = models
        self._foreign = foreign
        self._wake = asyncio.Event()
        self._held: set[JobId] = set()
        self._unready: dict[tuple[int, str], int] = {}
        self._written = 0
        self._handover: asyncio.Queue[list[Prepared]] = asyncio.Queue(maxsize=1)

    def wake(self) -> None:
        """Look at the queue now."""
        self._wake.set()

    async def run(self) -> None:
        """Work until cancelled; what is in hand then is given back unharmed.

        It may be run again: what could not be given back for want of the database is given back first.
        """
        self._handover = asyncio.Queue(maxsize=1)
        await self._release_held()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._prepare_batches(), name="noctuary-prepare")
                group.create_task(self._write_batches(), name="noctuary-write")
                group.create_task(self._keep_leases(), name="noctuary-leases")
        finally:
            await asyncio.shield(self._give_back())

    async def run_until_idle(self) -> None:
        """Work until no job waits that this worker could take."""
        running = asyncio.create_task(self.run())
        try:
            while not running.done() and await self._unfinished():
                await asyncio.wait({running}, timeout=0.05)
                self.wake()
            if running.done():
                running.result()
        except BaseExceptionGroup as group:
            raise first_of(group) from group
        finally:
            running.cancel()
            await asyncio.wait({running})
        await self._refresh_statistics()  # it may have been cancelled on its way there

    async def _unfinished(self) -> bool:
        async with self._database.connection() as connection:
            await jobs.reclaim_lapsed(connection)  # they wait again; else they would not count
            return bool(self._held) or await jobs.waiting(
                connection, within=jobs.MOMENT, foreign=self._foreign()
            )

    async def _prepare_batches(self) -> None:
        while True:
            self._wake.clear()
            claimed = await self._claim()
            if not claimed:
                if self._held or not await self._release_held():
                    await self._wait(await self._pause())
                continue
            async with self._database.connection() as connection:
                known = await index.known_hashes(connection, claimed)
            restless = {
                job.id for job in claimed if self._unready.get((job.folder, job.path), 0) >= UNREADY_TRIES
            }
            batch = await asyncio.to_thread(prepare, claimed, known, restless)
            await self._return([job.id for job in claimed[len(batch) :]])
            await self._handover.put(batch)
            if claimed[0].attempts > 1:
                await self._handover.join()  # nobody else's work is in our hands if it kills us

    async def _return(self, left: Sequence[JobId]) -> None:
        """Give back what a batch had no room for, so that a note saved meanwhile goes first."""
        if left:
            async with self._database.connection() as connection:
                await jobs.release(connection, self.name, left)
            self._held.difference_update(left)

    async def _claim(self) -> list[Claimed]:
        async with self._database.connection() as connection:
            await jobs.reclaim_lapsed(connection)
            claimed = await jobs.claim(
                connection,
                self.name,
                limit=await jobs.share(connection, self.name, most=BATCH),
                lease=self._lease,
                foreign=self._foreign(),
                idle=not self._held,
            )
        self._held.update(job.id for job in claimed)
        return claimed

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 can lose a cancellation
                await self._wake.wait()

    async def _pause(self) -> float:
        """Seconds until the queue may hold something for us that no notification will tell of."""
        async with self._database.connection() as connection:
            cursor = await connection.execute(_NEXT_CHANCE)
            row = await cursor.fetchone()
        if row is None or row[0] is None:
            return IDLE_WAIT
        return min(IDLE_WAIT, max(0.02, float(row[0])))

    async def _write_batches(self) -> None:
        while True:
            batch = await self._handover.get()
            await self._settle(batch)
            self._held.difference_update(item.job.id for item in batch)
            self._handover.task_done()
            await asyncio.to_thread(batch.clear)  # freeing a million counts takes the loop 20 ms
            await self._refresh_statistics()
            self.wake()  # a path that was held may wait again

    async def _refresh_statistics(self) -> None:
        """Have the tables analysed at doubling sizes and after a heap of work, once for all workers."""
        idle = self._handover.empty() and not self._held
        if self._written < (ANALYSE_IDLE if idle else ANALYSE_BUSY):
            return
        async with self._database.transaction() as connection:
            cursor = await connection.execute(_GROWN, {"most": GROWN_IDLE if idle else GROWN_BUSY})
            if await cursor.fetchone() == (True,):
                await connection.execute("SELECT refresh_statistics()")
        self._written = 0

    async def _settle(self, batch: Sequence[Prepared]) -> None:
        faulty = [item for item in batch if isinstance(item, Faulty)]
        unready = self._count_unready(batch)
        if unready or faulty:
            async with self._database.transaction() as connection:
                for delay, ids in unready.items():
                    await jobs.release(connection, self.name, ids, delay=delay)
                for item in faulty:
                    await jobs.fail(connection, self.name, item.job.id, item.error)
        for item in faulty:
            _log.error("%s", item.error)
        writable = [item for item in batch if isinstance(item, (Content, Gone))]
        if writable:
            await self._write(await self._believable(writable))

    def _count_unready(self, batch: Sequence[Prepared]) -> dict[float, list[JobId]]:
        """The jobs of notes that were being written, by the seconds until they are looked at again."""
        again: dict[float, list[JobId]] = {}
        for item in batch:
            place = (item.job.folder, item.job.path)
            before = self._unready.pop(place, 0)
            if isinstance(item, Unready):
                self._unready[place] = before + 1
                again.setdefault(UNREADY_DELAY * 2**before, []).append(item.job.id)
        return again

    async def _believable(self, batch: list[Content | Gone]) -> list[Content | Gone]:
        """Leave out deletions under a root that is missing, empty or another, unless a human asked."""
        from engine.notes.disk import doubtful

        roots = {item.job.root for item in batch if isinstance(item, Gone) and not item.job.confirmed}
        devices = await self._devices() if roots else {}
        lost = {root for root in roots if await asyncio.to_thread(doubtful, root, devices.get(str(root)))}
        kept = [
            item
            for item in batch
            if isinstance(item, Gone) and not item.job.confirmed and item.job.root in lost
        ]
        if kept:
            async with self._database.transaction() as connection:
                await jobs.done(connection, self.name, [item.job.id for item in kept])
            for root in sorted(lost):
                _log.warning(
                    "%s is empty, cannot be reached or is another: what is indexed of it is kept", root
                )
        dropped = {item.job.id for item in kept}
        return [item for item in batch if item.job.id not in dropped]

    async def _devices(self) -> dict[str, int | None]:
        """The file system each root was last seen on."""
        async with self._database.connection() as connection:
            cursor = await connection.execute("SELECT path, device FROM folder")
            return dict(await cursor.fetchall())

    async def _write(self, batch: Sequence[Content | Gone]) -> None:
        from psycopg import DatabaseError, OperationalError
        from psycopg.errors import ProgramLimitExceeded

        if not batch:
            return
        try:
            async with self._database.connection() as connection:
                drafted = await index.draft(connection, batch)
            async with self._database.transaction() as connection:
                written = await index.write(connection, self.name, drafted, self._models())
        except DatabaseError as error:
            if isinstance(error, OperationalError) and not isinstance(error, ProgramLimitExceeded):
                raise  # the server went away or is out of room: nothing to do with these notes
            if len(batch) > 1:
                for item in batch:
                    await self._write([item])
                return
            message = f"{batch[0].job.file} cannot be stored: {error.diag.message_primary or error}."
            _log.exception("%s", message)
            async with self._database.transaction() as connection:
                await jobs.fail(connection, self.name, batch[0].job.id, message)
        else:
            self._written += written.files + written.deleted
            _log.info(
                "indexed %d, unchanged %d, deleted %d, new passages %d",
                written.files, written.unchanged, written.deleted, written.new_passages,
            )  # fmt: skip

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._lease / 3)
            if self._held:
                async with self._database.connection() as connection:
                    await jobs.renew(connection, self.name, sorted(self._held), lease=self._lease)

    async def _give_back(self) -> None:
        from psycopg import OperationalError

        # Without the server they are given back when this worker runs again, or their leases lapse.
        with suppress(OperationalError, DatabaseUnavailable):
            await self._release_held()

    async def _release_held(self) -> bool:
        """Give back all that is in our hands by the database's word; whether that was anything.

        We may know of none: when the server crashes it forgets what was written last, and with it that jobs
        were done.
        """
        self._held.clear()
        async with self._database.transaction() as connection:
            held = await jobs.held(connection, self.name)
            await jobs.release(connection, self.name, held)
        return bool(held)
