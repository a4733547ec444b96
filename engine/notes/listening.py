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

from watchfiles import watch
from watchfiles._rust_notify import WatchfilesRustInternalError

PORTION = 1000
"""Changes a line: the parent reads one in a few milliseconds."""

LOOK_MS = 100
"""Milliseconds after which watchfiles returns without a change, at first to say that its watches stand."""

_UNMOUNTED = 0x2000
"""The kernel's IN_UNMOUNT: an event that never comes where it is asked for."""


def main(root: str, debounce: str, step: str, beat: str) -> None:
    """Listen below `root` until the parent has enough; times in milliseconds."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    batches = watch(
        root,
        watch_filter=None,
        debounce=int(debounce),
        step=int(step),
        rust_timeout=LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        ignore_permission_denied=True,
    )
    told = -math.inf  # the first batch is told in any case: the watches stand
    try:
        for batch in batches:
            if not batch and time.monotonic() - told < int(beat) / 1000:
                continue
            told = time.monotonic()
            if not _watches_left():
                _tell("OS file watch limit reached: some folders would not be watched.")
                return
            changes = [(change.name, path) for change, path in batch]
            for start in range(0, max(1, len(changes)), PORTION):
                _tell(changes[start : start + PORTION])
    except (WatchfilesRustInternalError, OSError) as error:
        _tell(str(error))


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
