"""How changes below the folders of notes are noticed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from engine.doctor.check import Check, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.settings import Settings

INOTIFY = Path("/proc/sys/fs/inotify")
COUNT_SECONDS = 5.0
"""Counting folders on a slow network mount is given up after this."""


def watching_checks(settings: Settings, roots: list[Path]) -> Iterator[Check]:
    """How changes below each root are noticed."""
    from engine.notes.watcher import remote_kind

    source, polling = settings.source("watch"), f"polling every {settings.poll_interval:g} s"
    if settings.watch == "polling":
        yield Check("watching", State.OK, f"By {polling} ({source}).")
        return
    remote = {root: kind for root in roots if (kind := remote_kind(root))}
    forced = settings.watch == "events"
    missing = f"by events, as {source} says; some will be missed"
    for root, kind in remote.items():
        how = missing if forced else f"by {polling}"
        state = State.WARN if forced else State.OK
        yield Check("watching", state, f"{root} lies on a network file system ({kind}): {how}.")
    local = roots if forced else [root for root in roots if root not in remote]
    if local or not roots:
        yield _by_events(local)


def _by_events(roots: list[Path]) -> Check:
    """Whether every folder below the roots can be watched by events."""
    if not sys.platform.startswith("linux"):
        return Check("watching", State.OK, "By events of the system.")
    try:
        limit = int((INOTIFY / "max_user_watches").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        return Check("watching", State.WARN, f"The inotify limit cannot be read: {error}.")
    needed = _count_folders(roots)
    sentence = f"By events; folders to watch: {needed:,}, at most {limit:,} can be."
    if needed < limit:
        return Check("watching", State.OK, sentence)
    return Check(
        "watching",
        State.WARN,
        f"{sentence} The rest is noticed by polling.",
        f"As root: sysctl fs.inotify.max_user_watches={max(2 * needed, 524_288)}",
    )


def _count_folders(roots: list[Path]) -> int:
    deadline = time.monotonic() + COUNT_SECONDS
    count = 0
    for root in roots:
        for _folder_path, _folders, _files in os.walk(root):
            count += 1
            if time.monotonic() > deadline:
                return count
    return count
