"""The process that listens for the kernel's events, run as a script by `engine.notes.events`.

It tells each batch as a line of JSON, a list of [kind, path], an empty one as a sign of life; a fault as
a line with a text, after which it ends. It ends too when its standard input does: with its parent.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from watchfiles import watch
from watchfiles._rust_notify import WatchfilesRustInternalError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

PORTION = 1000
"""Changes a line: the parent reads one in a few milliseconds."""

LOOK_MS = 100
"""Milliseconds after which watchfiles returns without a change, at first to say that its watches stand."""

_UNMOUNTED = 0x2000
"""The kernel's IN_UNMOUNT: an event that never comes where it is asked for."""


def main(root: str, debounce: str, step: str, beat: str) -> None:
    """Listen below `root` until the parent has enough; times in milliseconds."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        while _listen(root, int(debounce), int(step), int(beat) / 1000):
            _tell([("modified", root)])  # to be surveyed: what happened between two listenings is not told
    except (WatchfilesRustInternalError, OSError) as error:
        _tell(str(error))


def _listen(root: str, debounce: int, step: int, beat: float) -> bool:
    """Tell what happens. Returns True when the watches have to be placed anew.

    The kernel has one watch for a folder and for all links to it: with a link that goes, so does the watch.
    """
    placed = _identity(root)
    batches = watch(
        root,
        watch_filter=None,
        debounce=debounce,
        step=step,
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        ignore_permission_denied=True,
    )
    told = -math.inf  # the first batch is told in any case: the watches stand
    links: set[str] | None = None
    for batch in batches:
        if not batch and time.monotonic() - told < beat:
            continue
        told = time.monotonic()
        if not _watches_left():
            _tell("OS file watch limit reached: some folders would not be watched.")
            return False
        changes = [(change.name, path) for change, path in batch]
        for start in range(0, max(1, len(changes)), PORTION):
            _tell(changes[start : start + PORTION])
        if links is None:
            links = set(_links(root))
        elif _links_changed(changes, links):
            return True
        if _identity(root) not in {placed, None}:
            return True  # mounted or renamed into place while the watches were placed
    return False


def _identity(root: str) -> tuple[int, int] | None:
    try:
        status = os.stat(root)  # noqa: PTH116
    except OSError:
        return None  # the parent sees to it
    return status.st_dev, status.st_ino


def _links(folder: str) -> Iterator[str]:
    """Every link to a folder below a folder, and itself if it is one."""
    if Path(folder).is_symlink() and Path(folder).is_dir():
        yield folder
        return
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(parent, name)  # noqa: PTH118 - as os.walk gives it
            if os.path.islink(path):  # noqa: PTH114
                yield path


def _links_changed(changes: Sequence[tuple[str, str]], links: Collection[str]) -> bool:
    """Whether a link to a folder came or went, perhaps with a folder that it is in."""
    for kind, path in changes:
        if kind == "deleted" and any(link == path or link.startswith(f"{path}/") for link in links):
            return True
        if kind == "added" and next(_links(path), None) is not None:
            return True
    return False


def _watches_left() -> bool:
    """Whether the kernel would watch one more folder.

    Told to pass over folders that cannot be read, watchfiles 1.3 also passes over those for which there is
    no watch left, and over new ones in any case.
    """
    if sys.platform != "linux":
        return True
    system = ctypes.CDLL(None, use_errno=True)
    descriptor = system.inotify_init1(os.O_CLOEXEC)
    if descriptor < 0:
        return True  # no more listeners, which this one does not need
    try:
        return (
            system.inotify_add_watch(descriptor, b"/", _UNMOUNTED) >= 0 or ctypes.get_errno() != errno.ENOSPC
        )
    finally:
        os.close(descriptor)


def _tell(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
