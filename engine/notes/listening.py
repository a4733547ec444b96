"""The process that listens for the kernel's events, run as a script by `engine.notes.events`.

It tells each batch as a line of JSON, a list of [kind, path], an empty one as a sign of life; a fault as
a line with a text, after which it ends. It ends too when its standard input does: with its parent.
"""

from __future__ import annotations

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
            changes = [(change.name, path) for change, path in batch]
            for start in range(0, max(1, len(changes)), PORTION):
                _tell(changes[start : start + PORTION])
    except (WatchfilesRustInternalError, OSError) as error:
        _tell(str(error))


def _tell(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
