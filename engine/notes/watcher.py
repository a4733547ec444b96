"""The watcher: turns changes on the disk into jobs, and shows that it lives.

An event is only a hint: events are dropped, come without the files of a new folder, and stop for
ever when a root is replaced. So a hint about a note queues a look at it, a hint about a folder
surveys that folder (again when it has settled), and everything is surveyed at start, after every
fault and every so often. One process watches a folder, by advisory lock; others stand by.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.notes import drift, events, jobs
from engine.notes.disk import any_note
from engine.notes.events import EventsFailed
from engine.notes.hints import sort_hints
from engine.notes.model import Folder, WatchMode, WatchState
from engine.notes.watchers import recorded
from engine.services import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from engine.database import Database
    from engine.settings import Settings

ELECTION_WAIT = 2.0
"""Seconds between tries to become a folder's watcher: its holder's death is noticed within that."""

BEAT = 2.0
"""Seconds after which a quiet watcher shows a sign of life and looks whether its root is the same."""

SHOWN_BEAT = 15.0
"""Seconds between heartbeats written for other processes to see."""

SETTLE = (0.15, 2.0)
"""Seconds after a hint about a folder when it is surveyed: soon, and when its copying has ended
(files made before the kernel's watch stood on a new folder give no event)."""

DELETE_GRACE = 0.5
"""Seconds a deletion waits: an atomic save looks like one."""

BURST = 500
"""Hints in one go after which the kernel's queue may have overflowed and everything is surveyed."""

DEATHS = 3
"""Times the event watcher may die within a minute before polling takes its place."""

DEATH_PAUSE = 0.5
"""Seconds until it is started again, so that the events of one save kill it once and not thrice."""

_REMOTE = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "fuse.sshfs",
    "9p",
    "vboxsf",
    "fuse.rclone",
    "afpfs",
    "ceph",
}
"""File systems whose changes, made elsewhere, give no event here."""

# A folder may be called like a note; when such a path is gone, so may be the notes below it.
_WERE_FOLDERS = """
    SELECT gone.path FROM unnest(%(paths)s::text[]) AS gone (path)
    WHERE EXISTS (SELECT FROM file WHERE file.folder = %(folder)s
        AND file.path >= gone.path || '/' AND file.path < gone.path || '0')
"""

_log = logging.getLogger("noctuary.watcher")


class _RootReplaced(Exception):
    """The root is not the folder that is being watched any more."""


class _TryEvents(Exception):
    """Polling took the place of events long enough: they may be had again."""


class FolderWatcher:
    """Watches one folder until cancelled. `on_survey` gets every full survey."""

    def __init__(
        self,
        database: Database,
        folder: Folder,
        settings: Settings,
        *,
        process: str,
        on_survey: Callable[[drift.Survey], None],
    ) -> None:
        self.folder = folder
        self.state = WatchState(folder.path, WatchMode.STARTING)
        self._database = database
        self._settings = settings
        self._process = process
        self._on_survey = on_survey
        self._due: dict[str, list[float]] = {}
        self._due_changed = asyncio.Event()
        self._problem = False
        self._surveyed_at = -math.inf
        self._deaths: list[float] = []
        self._fault = ""
        self._shown_at = 0.0

    async def run(self) -> None:
        """Stand for election, watch while elected, stand again."""
        try:
            await self._run()
        finally:  # until it is started again nobody watches, whatever was so before
            self.state = WatchState(self.folder.path, WatchMode.STOPPED)

    async def _run(self) -> None:
        while True:
            lock = await self._database.try_lock(f"watch:{self.folder.id}")
            if lock is None:
                await self._stand_by()
                continue
            work = asyncio.create_task(self._hold())
            lost = asyncio.create_task(lock.lost.wait())
            try:
                await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    work.result()
            finally:
                for task in (work, lost):
                    task.cancel()
                await asyncio.gather(work, lost, return_exceptions=True)
                await lock.release()

    def survey_soon(self, below: str = "") -> None:
        """Survey the folder, or a part of it, as soon as the loop turns."""
        self._schedule(below, (0.0,))

    async def _stand_by(self) -> None:
        async with self._database.connection() as connection:
            held = await recorded(connection, self.folder.id)
        self.state = held[0] if held else WatchState(self.folder.path, WatchMode.ELSEWHERE)
        # Its holder queues what differs; what waits for a human is shown here too.
        if time.monotonic() - self._surveyed_at > self._settings.reconcile_interval:
            self._take(await drift.survey(self._database, self.folder))
        await asyncio.sleep(ELECTION_WAIT)

    async def _hold(self) -> None:
        while True:
            reason = self._reason_to_poll()
            try:
                await self._while_root_stands(WatchMode.POLLING if reason else WatchMode.EVENTS, reason)
            except* _RootReplaced:
                _log.warning("%s was replaced or cannot be reached", self.folder.path)
            except* _TryEvents:
                _log.info("%s: file events are tried again", self.folder.path)
            except* EventsFailed as faults:
                self._deaths.append(time.monotonic())
                self._fault = sentence(faults)
                _log.warning("the watcher of %s stopped: %s", self.folder.path, self._fault)
                await asyncio.sleep(DEATH_PAUSE)
            await self._until_root_stands()

    def _reason_to_poll(self) -> str:
        if self._settings.watch == "polling":
            return "set by `watch`"
        now = time.monotonic()
        self._deaths = [death for death in self._deaths if now - death < 60]
        if len(self._deaths) >= DEATHS:
            return f"file events failed repeatedly: {self._fault}"
        if self._settings.watch == "auto" and (kind := remote_kind(self.folder.path)):
            return f"{kind} gives no file events"
        return ""

    async def _while_root_stands(self, mode: WatchMode, reason: str) -> None:
        await self._show(mode, reason)
        identity = _identity(self.folder.path)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._survey_due(identity))
            group.create_task(self._survey_regularly(mode))
            if mode is WatchMode.EVENTS:
                group.create_task(self._events(identity))
            else:
                group.create_task(self._poll(reason, identity))

    async def _until_root_stands(self) -> None:
        if _identity(self.folder.path) is None:
            self._take(await drift.survey(self._database, self.folder))
        while _identity(self.folder.path) is None:
            await self._beat(WatchMode.MISSING, "the folder cannot be reached; its notes are kept")
            await asyncio.sleep(BEAT)

    async def _events(self, identity: tuple[int, int] | None) -> None:
        root = str(self.folder.path)
        first = True
        async with aclosing(events.changes(self.folder.path, beat=BEAT)) as batches:
            async for changes in batches:
                # A new folder may have the inode of the old one, so the root's own end counts as well.
                ended = any(path == root and kind != "modified" for kind, path in changes)
                if ended or _identity(self.folder.path) != identity:
                    raise _RootReplaced
                if first:
                    self.survey_soon()  # what changed before the kernel's watches stood
                    first = False
                await self._beat(WatchMode.EVENTS, "")
                if changes:
                    await self._hints([path for _, path in changes])

    async def _poll(self, reason: str, identity: tuple[int, int] | None) -> None:
        retry_events = time.monotonic() + self._settings.reconcile_interval
        while True:
            start = time.monotonic()
            if _identity(self.folder.path) != identity:
                raise _RootReplaced
            await self._survey("")
            await self._beat(WatchMode.POLLING, reason)
            # A large folder is not walked more than a twentieth of the time.
            await asyncio.sleep(max(self._settings.poll_interval, 20 * (time.monotonic() - start)))
            if self._deaths and time.monotonic() > retry_events:
                self._deaths.clear()
                raise _TryEvents

    async def _hints(self, paths: Sequence[str]) -> None:
        burst = len(paths) > BURST
        if burst:
            self._schedule("", SETTLE[1:])
        hints = await asyncio.to_thread(sort_hints, self.folder.path, paths)
        if self._problem or (hints.gone and not await asyncio.to_thread(any_note, self.folder.path)):
            self._schedule("", SETTLE)  # the root fills again, or was emptied: no job will tell
        for relative in () if burst else hints.folders:
            self._schedule(relative, SETTLE)
        if not hints.wanted and not hints.gone:
            return
        async with self._database.transaction() as connection:
            await jobs.enqueue(connection, self.folder.id, hints.wanted)
            await jobs.enqueue(connection, self.folder.id, hints.gone, delay=DELETE_GRACE)
            if burst:
                return  # the survey finds the rest
            cursor = await connection.execute(
                _WERE_FOLDERS, {"folder": self.folder.id, "paths": [item.path for item in hints.gone]}
            )
            for (relative,) in await cursor.fetchall():
                self._schedule(relative, SETTLE)

    def _schedule(self, below: str, delays: Sequence[float]) -> None:
        now = time.monotonic()
        # One soon and one when it has settled are enough, however many hints come; neither is ever lost.
        times = sorted([*self._due.get(below, []), *(now + delay for delay in delays)])
        self._due[below] = [times[0], times[-1]] if times[-1] > times[0] else times[:1]
        self._due_changed.set()

    async def _survey_due(self, identity: tuple[int, int] | None) -> None:
        self.survey_soon()
        while True:
            self._due_changed.clear()
            now = time.monotonic()
            ready = sorted(below for below, times in self._due.items() if times[0] <= now)
            for below in ready:
                if _identity(self.folder.path) != identity:
                    raise _RootReplaced
                rest = [time_ for time_ in self._due.pop(below) if time_ > now]
                if rest:
                    self._due[below] = rest
                await self._survey(below)
            waits = [times[0] for times in self._due.values()]
            timeout = max(0.0, min(waits) - time.monotonic()) if waits else None
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):  # wait_for of Python 3.11 can lose a cancellation
                    await self._due_changed.wait()

    async def _survey_regularly(self, mode: WatchMode) -> None:
        while mode is WatchMode.EVENTS:
            # The jitter keeps many folders and processes from walking the disk at once.
            await asyncio.sleep(self._settings.reconcile_interval * random.uniform(0.9, 1.1))  # noqa: S311 - no secret
            self.survey_soon()

    async def _survey(self, below: str) -> None:
        result, queued = await drift.reconcile(self._database, self.folder, below)
        if not below:
            self._take(result)
        if queued:
            _log.info("%s: %d paths queued", self.folder.path / below, queued)

    def _take(self, result: drift.Survey) -> None:
        self._problem, self._surveyed_at = result.problem is not None, time.monotonic()
        self._on_survey(result)

    async def _beat(self, mode: WatchMode, reason: str) -> None:
        changed = (self.state.mode, self.state.reason) != (mode, reason)
        self.state = WatchState(self.folder.path, mode, datetime.now(UTC), reason)
        if changed or time.monotonic() - self._shown_at > SHOWN_BEAT:
            await self._show(mode, reason)

    async def _show(self, mode: WatchMode, reason: str) -> None:
        self.state = WatchState(self.folder.path, mode, datetime.now(UTC), reason)
        self._shown_at = time.monotonic()
        async with self._database.connection() as connection:
            await connection.execute(
                "INSERT INTO watcher (folder, process, mode, reason)"
                " SELECT id, %s, %s, %s FROM folder WHERE id = %s"
                " ON CONFLICT (folder) DO UPDATE SET process = excluded.process, mode = excluded.mode,"
                " reason = excluded.reason, beat_at = now()",
                (self._process, str(mode), reason, self.folder.id),
            )


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
        return (status.st_dev, status.st_ino) if root.is_dir() else None
    except OSError:
        return None


def remote_kind(path: Path) -> str:
    """The name of the network file system a path lies on, or an empty string."""
    import psutil

    mounts = [part for part in psutil.disk_partitions(all=True) if path.is_relative_to(part.mountpoint)]
    if not mounts:
        return ""
    nearest = max(mounts, key=lambda part: len(part.mountpoint))
    return nearest.fstype if nearest.fstype in _REMOTE else ""
