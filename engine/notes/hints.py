"""What events of the file system ask for: a look at a note, or a survey of a folder.

What stands on the disk now decides, never the kind of the event. Blocks on the disk; called in a thread.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from engine.notes import disk
from engine.notes.jobs import Wanted
from engine.notes.model import JobKind

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class Hints:
    """Notes to look at, notes that are gone, and folders to survey, by their paths in the root."""

    wanted: list[Wanted] = field(default_factory=list)
    gone: list[Wanted] = field(default_factory=list)
    folders: set[str] = field(default_factory=set)


def sort_hints(root: Path, paths: Iterable[str]) -> Hints:
    """What the paths of a batch of events ask for."""
    hints = Hints()
    for path in set(paths):
        relative = PurePosixPath(os.path.relpath(path, root))
        if relative.name == ".gitignore":
            hints.folders.add(_folder(relative.parent))
        elif not relative.name:
            hints.folders.add("")
        elif relative.parts[0] != ".." and not disk.hidden(str(relative)):
            _sort(root, relative, hints)
    return hints


def _sort(root: Path, relative: PurePosixPath, hints: Hints) -> None:
    if disk.through_link(root, _folder(relative.parent)):
        place = _behind_links(root, relative)
        if place is None or disk.hidden(str(place)):
            return
        relative = place
    path = str(relative)
    if not disk.nameable(path):
        hints.folders.add("")
        return
    note = disk.is_note(relative.name)
    try:
        status = (root / relative).stat()
    except OSError:
        if note:
            hints.gone.append(Wanted(JobKind.DELETE_PATH, path, time.time_ns()))
        else:
            hints.folders.add(path)  # perhaps a folder of notes that was moved away
        return
    if stat.S_ISDIR(status.st_mode):
        hints.folders.add(path)
        if note:  # a folder may stand where a note stood
            hints.gone.append(Wanted(JobKind.DELETE_PATH, path, time.time_ns()))
    elif note:
        hints.wanted.append(Wanted(JobKind.INGEST_PATH, path, disk.written_ns(status)))


def _behind_links(root: Path, relative: PurePosixPath) -> PurePosixPath | None:
    """Where a path that leads through a link really lies in the root, if it does.

    The kernel's watches follow links to folders, as we do not, and one for a folder of the root may go by
    the name of a link to it.
    """
    real = Path(os.path.realpath(root / relative.parent))
    return PurePosixPath(real.relative_to(root), relative.name) if real.is_relative_to(root) else None


def _folder(path: PurePosixPath) -> str:
    return "" if path == PurePosixPath() else str(path)
