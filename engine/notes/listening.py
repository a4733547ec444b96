"""The process that listens for the kernel's events, run as a script by `engine.notes.events`.

It tells each batch as a line of JSON, a list of [kind, path], an empty one as a sign of life; a fault as
a line with a text, after which it ends. It ends too when its standard input does: with its parent.

watchfiles 1.3 says nothing of file systems that are mounted or unmounted, which take its watches with them,
nor of events that the kernel dropped because its queue was full. Both are seen here (`Mounts`, `Queue`).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import math
import os
import re
import select
import struct
import sys
import termios
import threading
import time
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from watchfiles import watch
from watchfiles._rust_notify import WatchfilesRustInternalError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from watchfiles.main import FileChange

PORTION = 1000
"""Changes a line: the parent reads one in a few milliseconds."""

LOOK_MS = 100
"""Milliseconds after which watchfiles returns without a change, at first to say that its watches stand."""

_UNMOUNTED = 0x2000
"""The kernel's IN_UNMOUNT. Every watch on that file system is sent it; asked for alone, nothing else is."""

_EVENT = struct.Struct("iIII")
"""The kernel's inotify_event: watch, mask, cookie, and the length of the name that follows."""

_MOUNTS = "/proc/self/mountinfo"

_LONGEST_QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")

LOOK_AT_QUEUE = 0.01
"""Seconds between two looks at the queue while events come: emptying a full one takes five times that."""

CALM = 0.5
"""Seconds after the last look that found the queue long: then it is worth seeing what was dropped."""


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
    # The watches are placed when the first batch is asked for: what is mounted meanwhile counts too.
    with closing(batches), Mounts(root) as mounts, Queue() as queue:
        return _follow(root, batches, beat, mounts, queue)


def _follow(root: str, batches: Iterable[set[FileChange]], beat: float, mounts: Mounts, queue: Queue) -> bool:
    placed = _identity(root)
    told = -math.inf  # the first batch is told in any case: the watches stand
    links: set[str] | None = None
    for batch in batches:
        if mounts.changed():
            return True
        if queue.overflowed():
            _tell([("modified", root)])
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


class Mounts:
    """Tells whether a file system came or went at, above or below a folder. Only Linux says so.

    The table of mounts alone is not enough: one that is unmounted and mounted again between two looks may
    stand there as before, down to its number. But the kernel tells whoever watched a folder in it.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._changes = select.poll()
        self._held = ExitStack()
        self._table = self._ends = -1
        self._known: frozenset[bytes] = frozenset()

    def __enter__(self) -> Self:
        if sys.platform == "linux" and Path(_MOUNTS).exists():
            self._table = self._hold(os.open(_MOUNTS, os.O_RDONLY | os.O_CLOEXEC), select.POLLPRI)
            self._known = self._mounts()
            self._watch()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _hold(self, descriptor: int, events: int) -> int:
        self._held.callback(os.close, descriptor)
        self._changes.register(descriptor, events)
        return descriptor

    def _watch(self) -> None:
        """Be told of the end of each file system in which a part of the folder lies."""
        system = ctypes.CDLL(None)
        ends = system.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if ends < 0:
            return  # no more listeners: what comes and stays is seen in the table
        self._ends = self._hold(ends, select.POLLIN)
        for place in {os.fsencode(self._root), *map(_place, self._known)}:
            if _within(place, self._root):
                system.inotify_add_watch(ends, place, _UNMOUNTED)

    def changed(self) -> bool:
        """Whether something was mounted or unmounted since the last look."""
        ready = dict(self._changes.poll(0))
        if self._ends in ready and self._ended():
            return True
        return self._table in ready and self._mounts() != self._known

    def _ended(self) -> bool:
        events, at, ended = os.read(self._ends, 65536), 0, False
        while at < len(events):
            _, mask, _, length = _EVENT.unpack_from(events, at)
            ended, at = ended or bool(mask & _UNMOUNTED), at + _EVENT.size + length
        return ended

    def _mounts(self) -> frozenset[bytes]:
        """The lines of the table that concern the folder, without the options, which say nothing of notes."""
        os.lseek(self._table, 0, os.SEEK_SET)
        with open(self._table, "rb", closefd=False) as table:
            lines = [b" ".join(line.split(b" ")[:5]) for line in table]
        return frozenset(
            line for line in lines if _within(_place(line), self._root) or _within(self._root, _place(line))
        )


class Queue:
    """Tells whether the queue that is opened next grew so long that the kernel may have dropped events.

    Only on Linux can it be looked at: by a thread that wakes when there are events, since watchfiles empties
    it within a few hundredths of a second. Half full counts as full, by events of the shortest kind.
    """

    def __init__(self) -> None:
        self._before = _queues()
        self._long_at = math.inf
        self._thread: threading.Thread | None = None
        self._end_read, self._end_write = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end_write)
        if self._thread is not None:
            self._thread.join()
        os.close(self._end_read)

    def overflowed(self) -> bool:
        """Whether it may have, and is short again; once for each time."""
        if self._thread is None and (fresh := _queues() - self._before):
            self._thread = threading.Thread(target=self._look, args=(max(fresh),), daemon=True)
            self._thread.start()
        if time.monotonic() - self._long_at < CALM:
            return False
        self._long_at = math.inf
        return True

    def _look(self, queue: int) -> None:
        most = int(_LONGEST_QUEUE.read_text()) * _EVENT.size // 2
        events = select.poll()
        events.register(queue, select.POLLIN)
        events.register(self._end_read, select.POLLHUP)
        while self._end_read not in dict(events.poll()):
            (length,) = struct.unpack("i", fcntl.ioctl(queue, termios.FIONREAD, bytes(4)))
            if length > most:
                self._long_at = time.monotonic()
            time.sleep(LOOK_AT_QUEUE)


def _queues() -> set[int]:
    """The descriptors by which this process listens to the kernel."""
    if not _LONGEST_QUEUE.exists():
        return set()
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was the one that lists them
            if str(each.readlink()) == "anon_inode:inotify":
                found.add(int(each.name))
    return found


def _place(mount: bytes) -> bytes:
    r"""Where something is mounted, in which the table spells blanks and backslashes as `\040`."""
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), mount.split(b" ")[4])


def _within(path: str | bytes, folder: str | bytes) -> bool:
    """Whether a path is a folder's own, or lies below it."""
    path, folder = os.fsencode(path), os.fsencode(folder).rstrip(b"/")
    return path == folder or path.startswith(folder + b"/")


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
