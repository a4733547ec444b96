"""Who watches the folders, as every process can read it in the table `watcher`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.notes.model import FolderId, WatchMode, WatchState

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_RECORDED = """
    SELECT folder.path, watcher.process, watcher.mode, watcher.reason, watcher.beat_at
    FROM watcher JOIN folder ON folder.id = watcher.folder
    WHERE %(folder)s::integer IS NULL OR watcher.folder = %(folder)s ORDER BY folder.path
"""


async def recorded(connection: AsyncConnection, folder: FolderId | None = None) -> list[WatchState]:
    """The watchers of all processes (of one folder, or all), each as seen from elsewhere."""
    cursor = await connection.execute(_RECORDED, {"folder": folder})
    return [
        WatchState(Path(path), WatchMode.ELSEWHERE, beat, reason, process, _mode(mode))
        for path, process, mode, reason, beat in await cursor.fetchall()
    ]


def _mode(name: str) -> WatchMode | None:
    """The mode of that name; a newer program may have one that is not known here."""
    return WatchMode(name) if name in set(WatchMode) else None
