"""The kernel gives too few watches, or drops events: polling takes over, surveys make up for it, and it is said."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.notes import events
from engine.notes.model import WatchMode
from tests.faults.nursery import Nursery
from tests.faults.truth import settle
from tests.integration.test_watcher_faults import listeners
from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from tests.integration.vault import Vault
    from tests.integration.watching import Watched

FEW = 10
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
_MAPPED = 'until read -r first rest < /proc/self/uid_map; do :; done; exec sh -c "$@"'
_LIMITED = f'echo {FEW} > /proc/sys/user/max_inotify_watches && exec "$0" "$@"'
PREFIX = ("unshare", "--user", "sh", "-c", _MAPPED, "sh", _LIMITED)
"""A user namespace has a limit of its own, which its root may set."""


def map_users(pid: int) -> None:
    """Give a process in a user namespace every user there is: it reaches what this one reaches."""
    own = Path("/proc/self/ns/user").readlink()
    while Path(f"/proc/{pid}/ns/user").readlink() == own:
        os.sched_yield()
    for kind in ("gid_map", "uid_map"):
        Path(f"/proc/{pid}/{kind}").write_text("0 0 4294967295\n")


@cache
def refusal() -> str:
    """Why no process with a limit of its own can be made here; empty when it can."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        return "it takes root and unshare"
    return subprocess.run(
        ["unshare", "--user", "true"], check=False, capture_output=True, text=True
    ).stderr.strip()


@pytest.mark.skipif(bool(refusal()), reason=f"the kernel's limit cannot be set for one process: {refusal()}")
async def test_too_few_watches_are_told_and_polling_takes_over(
    vault: Vault, environment: dict[str, str]
) -> None:
    for number in range(3 * FEW):
        vault.write(f"{number}/{number}.md", f"word{number}\n")
    mother = await Nursery.start(*PREFIX, begun=map_users)
    mine = {**environment, "DATABASE_URL": vault.settings.database_url or "", "NOCTUARY_POLL_INTERVAL": "0.2"}
    try:
        await mother.spawn(mine, "watch", "work")
        (row,) = await eventually(lambda: vault.rows("SELECT reason FROM watcher WHERE mode = 'polling'"))
        assert "OS file watch limit reached" in row[0]
        await settle(vault)
        (vault.root / "0/0.md").unlink()
        vault.write("new/deep/a.md", "found by polling\n")
        await settle(vault)
        assert await vault.found("polling") == ["new/deep/a.md"]
    finally:
        await mother.close()


async def test_a_listener_that_cannot_be_started_is_replaced_by_polling(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when no more processes can be made."""
    monkeypatch.setattr(events.sys, "executable", "/nowhere/python")
    async with watched(vault, poll_interval=0.1) as held:
        await held.mode(WatchMode.POLLING)
        assert held.state.reason == (
            "file events failed repeatedly: the process that listens for them cannot be started:"
            " No such file or directory"
        )
        vault.write("a.md", "found all the same\n")
        await settle(vault)
        assert held.services.faults == {}


@pytest.mark.skipif(not QUEUE.exists(), reason="the kernel's queue of events is Linux's")
async def test_events_beyond_the_kernels_queue_are_made_up_for_by_a_survey(vault: Vault) -> None:
    """A listener that does not run while more happens than the kernel remembers: few names, many events."""
    vault.write("a.md", "a\n")
    vault.write("b.md", "b\n")
    async with watched(vault) as held:
        first = held.state.beat
        await eventually(lambda: held.state.beat != first)  # its watches stand
        await held.agrees()
        _overflow(held)
        vault.write("lost/late.md", "no event tells of this one\n")
        listeners()[0].send_signal(signal.SIGCONT)
        await settle(vault)
        assert await vault.found("event") == ["lost/late.md"]
        assert held.services.faults == {}


def _overflow(held: Watched) -> None:
    (listener,) = listeners()
    listener.send_signal(signal.SIGSTOP)
    files = [(held.vault.root / name).open("a") for name in ("a.md", "b.md")]
    for _ in range(int(QUEUE.read_text()) // 2 + 1000):  # an event that repeats the one before is not queued
        for file in files:
            file.write("x")
            file.flush()
    for file in files:
        file.close()
