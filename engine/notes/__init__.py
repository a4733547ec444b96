"""Notes: a folder of Markdown becomes searchable, live, with line citations.

`Notes` is all that screens and commands see of it; the nouns are in `engine.notes.model`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from engine.notes import citations, drift, failures, folders, joblist, jobs, named, reach
from engine.notes.embedders import EMBEDDER, Embedders
from engine.notes.model import (
    Citation,
    DriftReport,
    DriftRow,
    FailedPassage,
    Folder,
    FolderId,
    Freshness,
    Job,
    JobCounts,
    JobId,
    JobStatus,
    Mode,
    NotesStatus,
    PassageId,
    Preview,
    SearchResult,
    ServiceFault,
)
from engine.notes.reporting import reporting
from engine.notes.standing import Standing
from engine.notes.tally import Tally, index_counts
from engine.notes.traced import Searched, untraced
from engine.notes.waking import wake_on
from engine.notes.watchers import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from engine.database import Database
    from engine.models.embedding.base import Embedder
    from engine.notes.comparing import Comparer
    from engine.notes.search import Searcher
    from engine.notes.watcher import FolderWatcher
    from engine.notes.worker import Worker
    from engine.services import Services
    from engine.settings import Settings

MAINTENANCE_INTERVAL = 60.0
"""Seconds between looks at what wants tidying: lapsed leases, old jobs, small segments."""

FIRST_MAINTENANCE = 30.0
"""Seconds after the start until the first of these looks: the first search shall not compete with it."""


class Notes:
    """The notes of one engine."""

    def __init__(
        self, database: Database, embedder: Embedder, settings: Settings, services: Services
    ) -> None:
        from engine.notes.search import Searcher

        services.on_change = lambda: database.feed.tell("service")
        self._database = database
        self._settings = settings
        self._services = services
        self._reach = reach.Reach(database)
        self.embedders: Embedders = Embedders(
            database, settings, embedder, services.on_change, self._reach.foreign
        )
        self._searcher: Searcher = Searcher(database, self.embedders)
        self._watchers: dict[FolderId, FolderWatcher] = {}
        self._watching = False
        self.on_search: Searched = untraced
        self._standing = Standing(database, self._model)
        self._job_counts = Tally(joblist.counts)
        self._index_counts = Tally(index_counts)

    # Folders

    async def folders(self) -> list[Folder]:
        """The folders that are indexed, ordered by path."""
        async with self._database.connection() as connection:
            return await folders.all_folders(connection)

    async def foreign(self) -> dict[FolderId, str]:
        """The folders that lie on another machine and are not mounted here, each with a sentence on it."""
        async with self._database.connection() as connection:
            return await reach.foreign(connection)

    async def add_folder(self, path: Path) -> Folder:
        """Add a folder (or return it, when it is there), and watch it when this process watches.

        Raises:
            FolderError: it cannot be read, or overlaps with another.
        """
        async with self._database.connection() as connection:
            folder = await folders.add(connection, path)
        await self._follow_folders()
        return folder

    async def remove_folder(self, folder: FolderId) -> None:
        """Forget a folder and its index. The folder on the disk is not touched."""
        from engine.notes import index

        await self._services.stop(_watch_name(folder))
        self._watchers.pop(folder, None)
        self._standing.forget(folder)
        async with self._database.transaction() as connection:
            await index.forget_folder(connection, folder)

    # Search

    async def search(
        self,
        query: str,
        *,
        k: int | None = None,
        path_glob: str | None = None,
        folder: Path | None = None,
        heading: str | None = None,
        mode: Mode = Mode.HYBRID,
        max_distance: float | None = None,
        prefix: bool = False,
        trace: bool = True,
    ) -> SearchResult:
        """The passages that answer, best first.

        `k` is how many at most, `path_glob` a pattern as in `.gitignore`, `max_distance` a cosine
        distance (0 to 2); `prefix` takes the last word as unfinished. Without `trace` nothing is kept of it.

        Raises:
            QueryError: an option cannot be read.
            FolderError: the folder is none a system can have.
            ModelError: the mode is vector and the model does not answer.
        """
        from engine.notes.search import Asked

        limit = self._settings.retrieval_default_k if k is None else k
        distance = self._settings.retrieval_max_distance if max_distance is None else max_distance
        asked = Asked(query, limit, mode, path_glob, folder, heading, distance, prefix)
        result = await self._searcher.search(asked)
        if trace:
            self.on_search(result, typing=prefix)
        return result

    async def freshness(self, citation: Citation) -> Freshness:
        """The citation checked against the disk now."""
        return await asyncio.to_thread(citations.freshness, citation)

    async def preview(self, citation: Citation, *, context: int = 8) -> Preview:
        """The cited lines as they are on the disk now, with `context` lines around them."""
        return await asyncio.to_thread(citations.preview, citation, context)

    # The queue

    async def jobs(
        self, *, status: JobStatus | None = None, text: str = "", limit: int = 200, offset: int = 0
    ) -> list[Job]:
        """A page of jobs, newest first; `text` is looked for in path and error."""
        async with self._database.connection() as connection:
            return await joblist.listing(connection, status=status, text=text, limit=limit, offset=offset)

    async def job_counts(self) -> JobCounts:
        """Jobs by status, and the rate."""
        async with self._database.connection() as connection:
            return await joblist.counts(connection)

    async def retry(self, ids: Sequence[JobId] | None = None, *, strict: bool = False) -> int:
        """Queue failed jobs again; without ids all of them, and passages the model failed on.

        Raises:
            RetryError: with `strict`, when one of them is no failed job; nothing is queued then.
        """
        async with self._database.transaction() as connection:
            if strict:
                await jobs.require_failed(connection, ids or ())
            count = await jobs.retry(connection, ids)
            if ids is None:
                count += await failures.retry(connection)
        return count

    async def failed_passages(self, *, text: str = "", limit: int = 200) -> list[FailedPassage]:
        """Passages the model could not embed, by path; `text` is looked for in path and error."""
        async with self._database.connection() as connection:
            return await failures.listing(connection, self._model(), text=text, limit=limit)

    async def failed_passage_count(self) -> int:
        """How many passages the model could not embed."""
        async with self._database.connection() as connection:
            return await failures.count(connection, self._model())

    async def retry_passages(self, ids: Sequence[PassageId] | None = None, *, strict: bool = False) -> int:
        """Let the model try again what it could not embed (None: all). Returns how many.

        Raises:
            RetryError: with `strict`, when it did not fail on one of them; nothing is tried then.
        """
        async with self._database.transaction() as connection:
            if strict:
                await failures.require_failed(connection, ids or ())
            return await failures.retry(connection, ids)

    async def index_all(self, folder: FolderId | None = None) -> int:
        """Survey the folders (or one) and queue what differs from the index. Returns the jobs queued."""
        queued = 0
        for each in await self.folders():
            if folder is None or each.id == folder:
                result, count = await drift.reconcile(self._database, each)
                self._standing.surveyed(result)
                queued += count
        return queued

    async def ingest(self, path: Path) -> int:
        """Queue one note, or what differs below one folder. Returns the jobs queued.

        Raises:
            FolderError: the path lies in no indexed folder, is none, or nothing that is indexed.
        """
        return await named.ingest(self._database, path, await self.folders())

    # Drift

    async def drift(self, paths: Sequence[str] = ()) -> DriftReport:
        """Survey every folder now and report, with `paths` only what lies at or below them.

        Raises:
            FolderError: one of the paths is neither an indexed folder nor a path in one.
        """
        known = await self.folders()
        report = await self._standing.look(known)
        return await asyncio.to_thread(named.narrowed, report, paths, known) if paths else report

    @property
    def last_drift(self) -> DriftReport | None:
        """What is known of drift without a new walk: by the last surveys, and the jobs done since."""
        return self._standing.report

    async def repair(self, keys: Sequence[str] | None = None) -> int:
        """Queue what mends the drift rows of the given keys, or all. Returns how many."""
        report = await self.drift()
        chosen = None if keys is None else frozenset(keys)
        rows: list[DriftRow] = [row for row in report.rows if chosen is None or row.key in chosen]
        queued = await drift.repair(self._database, rows, await self.folders())
        self.embedders.backlog.wake()
        return queued

    # The state of things

    async def status(self, *, exact: bool = True) -> NotesStatus:
        """One snapshot of watchers, queue, index and embedding.

        Without `exact` the counts may be a moment old: for those who ask again and again.
        """
        async with self._database.connection() as connection:
            counts = await self._job_counts.get(connection, exact=exact)
            index = await self._index_counts.get(connection, exact=exact)
            embedding = await self.embedders.progress(connection, exact=exact)
            watchers = [watcher.state for watcher in self._watchers.values()]
            if not self._watching:
                watchers = await recorded(connection)
        return NotesStatus(tuple(watchers), counts, embedding, index, self.faults())

    def faults(self) -> tuple[ServiceFault, ...]:
        """The background services of this process that fell, the one down the longest first."""
        held = self._services
        found = [ServiceFault(name, reason, held.since[name]) for name, reason in held.faults.items()]
        return tuple(sorted(found, key=lambda fault: fault.since))

    @property
    def model_trouble(self) -> str:
        """Why the model made no vector when it was last asked for one; empty when it did."""
        return self.embedders.trouble

    @property
    def comparer(self) -> Comparer:
        """Compares models by labelled questions; nothing of what answers changes."""
        from engine.notes.comparing import Comparer

        return Comparer(self._database, self._settings, self, self._reach.foreign)

    # Work

    async def prepare(self) -> None:
        """Take up the embedding model, whose vectors can be searched then, and see which folders are here."""
        await self._reach.refresh()
        await self.embedders.prepare()

    async def start(self, *, watch: bool, work: bool, embed: bool) -> None:
        """Start this process's share of the background work."""
        self._watching = watch
        if embed:
            self._services.start("model", self._searcher.warm)
        if work:
            worker = self._worker()
            self._services.start("worker", lambda: self._work(worker))
            self._services.start("maintenance", self._maintain)
        if embed:
            self._services.start(EMBEDDER, self.embedders.run)
            self._services.start("interim", self.embedders.interim.run)
        self._services.start("models", lambda: self.embedders.follow(self._services))
        if watch:
            self._services.start("drift", self._standing.follow)
        if watch or work:
            self._services.start("folders", self._watch_folders)

    async def work_until_idle(
        self, on_progress: Callable[[NotesStatus], None] | None = None, *, embed: bool = True
    ) -> None:
        """Do all waiting jobs, then (with `embed`) all waiting vectors, tidy up, and return."""
        from engine.notes import upkeep

        async def report() -> None:
            if on_progress is not None:
                on_progress(await self.status(exact=False))

        worker = self._worker()
        while True:
            await reporting(worker.run_until_idle(), report)
            if not embed:
                break
            await reporting(self.embedders.run_until_idle(), report)
            async with self._database.connection() as connection:
                if not await jobs.waiting(connection, within=jobs.MOMENT, foreign=self._reach.foreign()):
                    break  # otherwise a note was saved meanwhile, and the vectors waited for its words
        await upkeep.once(self._database)  # where no console ever runs, nobody else does it

    def _model(self) -> int | None:
        return self.embedders.backlog.model

    async def _work(self, worker: Worker) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            group.create_task(wake_on(self._database, "job", worker.wake))

    def _worker(self) -> Worker:
        from engine.notes.worker import Worker

        return Worker(
            self._database,
            lease=self._settings.lease_seconds,
            models=self.embedders.models,
            foreign=self._reach.foreign,
        )

    async def _watch_folders(self) -> None:
        await self._follow_folders()
        async for _ in self._database.feed.subscribe("folder"):
            await self._follow_folders()

    async def _follow_folders(self) -> None:
        """Run a watcher for each folder there is, and none for one that is gone."""
        await self._reach.refresh()
        if not self._watching:
            return
        from engine.notes.watcher import FolderWatcher
        from engine.notes.worker import worker_name

        left = self._reach.foreign()
        known = {folder.id: folder for folder in await self.folders() if folder.id not in left}
        for gone in set(self._watchers) - set(known):
            await self._services.stop(_watch_name(gone))
            self._watchers.pop(gone, None)
            self._standing.forget(gone)
        for identity, folder in known.items():
            if identity not in self._watchers:
                watcher = FolderWatcher(
                    self._database,
                    folder,
                    self._settings,
                    process=worker_name(),
                    on_survey=self._standing.surveyed,
                )
                self._watchers[identity] = watcher
                self._services.start(_watch_name(identity), watcher.run)

    async def _maintain(self) -> None:
        from engine.notes import upkeep

        await asyncio.sleep(FIRST_MAINTENANCE)
        while True:
            await upkeep.once(self._database)
            await self.embedders.judge()
            # What lies on another machine may have been mounted, or be so no more.
            await self._follow_folders()
            await asyncio.sleep(MAINTENANCE_INTERVAL)


def _watch_name(folder: FolderId) -> str:
    return f"watch-{folder}"
