"""What is known of drift without another walk of the disk: the last survey of each folder, kept up to date
with what jobs did since. It feeds whoever shows what waits for a human.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.database.bulk import every
from engine.notes import disk, drift
from engine.settings.paths import is_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.database import Database
    from engine.notes.drift import Indexed, Survey
    from engine.notes.model import DriftReport, Folder, FolderId

TOPIC = "drift"
"""Topic under which subscribers of this process hear that the report changed; no table has that name."""

SURVEYED = "surveyed"
"""Topic under which a new survey is told within this process."""

SHORTEST_PAUSE, PATIENCE = 1.0, 30
"""Seconds between two reports while jobs finish, and for how many times as long as one took at least."""

_NOW = "SELECT path, hash, size, mtime_ns, ctime_ns FROM file WHERE folder = %s AND path = ANY(%s)"


class Standing:
    """The last surveys of one process and the report made of them. `model` gives the model in use."""

    def __init__(self, database: Database, model: Callable[[], int | None]) -> None:
        self._database = database
        self._model = model
        self._surveys: dict[FolderId, Survey] = {}
        self._lock = asyncio.Lock()
        self.report: DriftReport | None = None

    def surveyed(self, result: Survey) -> None:
        """Take in the survey of a whole folder."""
        self._surveys[result.folder.id] = result
        self._database.feed.tell(SURVEYED)

    def forget(self, folder: FolderId) -> None:
        """A folder is gone."""
        self._surveys.pop(folder, None)

    async def look(self, folders: Sequence[Folder]) -> DriftReport:
        """Survey these folders now, queueing nothing, and report."""
        async with self._lock:
            start = time.perf_counter()
            found = [await drift.survey(self._database, folder) for folder in folders]
            self._surveys = {result.folder.id: result for result in found}
            report = await drift.report(self._database, found, self._model(), time.perf_counter() - start)
        self._publish(report)
        return report

    async def follow(self) -> None:
        """Report anew after surveys and while jobs finish, until cancelled."""
        changes = self._database.feed.subscribe("job", "folder", SURVEYED)
        await self.refresh()
        async for _ in changes:
            start = time.perf_counter()
            await self.refresh()
            await asyncio.sleep(max(SHORTEST_PAUSE, PATIENCE * (time.perf_counter() - start)))

    async def refresh(self) -> None:
        """Bring the report up to date from the surveys there are, the index and the queue."""
        async with self._lock:
            before = dict(self._surveys)
            if not before and self.report is None:
                return
            settled = {key: await self._settled(result) for key, result in before.items()}
            for key, result in settled.items():
                if self._surveys.get(key) is before[key]:  # else a newer one came meanwhile
                    self._surveys[key] = result
            report = await drift.report(self._database, list(settled.values()), self._model(), 0.0)
            oldest = min((result.at for result in settled.values()), default=report.at)
        self._publish(replace(report, at=oldest))

    def _publish(self, report: DriftReport) -> None:
        before, self.report = self.report, report
        if before is None or (before.rows, before.problems) != (report.rows, report.problems):
            self._database.feed.tell(TOPIC)

    async def _settled(self, result: Survey) -> Survey:
        """The survey without the differences that are none any more."""
        differing = [*result.missing, *result.changed, *result.orphaned]
        if not differing:
            return result
        async with self._database.connection() as connection:
            cursor = await connection.execute(_NOW, (result.folder.id, differing))
            rows = await every(cursor)
        now = {row[0]: drift.Indexed(row[1], disk.Stamp(row[2], row[3], row[4])) for row in rows}
        return await asyncio.to_thread(_without_settled, result, now)


def _without_settled(result: Survey, now: dict[str, Indexed]) -> Survey:
    root = result.folder.path
    unwritten = [path for path in result.changed if now.get(path) == result.indexed[path]]
    orphaned = [path for path in result.orphaned if path in now]
    confirmed = bool(result.orphaned) and not orphaned and is_folder(root)  # a human let an emptied root go
    return replace(
        result,
        missing=_there([path for path in result.missing if path not in now], root),
        changed=_there(unwritten, root),
        orphaned=orphaned,
        problem=None if confirmed else result.problem,
    )


def _there(paths: Iterable[str], root: os.PathLike[str]) -> list[str]:
    """Those that stand on the disk: what was removed since needs no indexing."""
    return [path for path in paths if os.path.lexists(os.path.join(root, path))]  # noqa: PTH118 - as surveyed
