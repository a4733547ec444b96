"""Whether a note that differs from the index wants a job, by the clocks of files, jobs and this machine.

None of them can be trusted alone: a file may be dated in any century, and a clock may be set back.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.notes.disk import Stamp
    from engine.notes.drift import OpenJob

CLOCKS_DIFFER = 2.0
"""Seconds by which a file system's time stamps may lag behind the database's clock (FAT: 2 s)."""

CLOCK_SET_BACK = 60.0
"""Seconds by which a job's stamp is ahead of the clock only when that was set back since."""


def wants_a_job(job: OpenJob | None, stamp: Stamp) -> bool:
    """Whether what differs is nobody's business yet.

    A worker may have read a note before it was written again: what was written since it started wants
    another look, which costs next to nothing when it was not needed.
    """
    if job is None or job.status == "pending":
        return job is None
    if job.status == "processing" and (not stamp.ctime_ns or job.started_at is None):
        return True
    since = job.finished_at if job.status == "failed" else job.started_at
    now = time.time()
    if since is None or since.timestamp() > now + CLOCK_SET_BACK:
        return True
    slack = CLOCKS_DIFFER if job.status == "processing" else 0.0
    return _written(stamp, now) > since.timestamp() - slack


def _written(stamp: Stamp, now: float) -> float:
    """When a file was written last, in seconds. A stamp of the future tells nothing: anyone can set one."""
    seconds = (stamp.mtime_ns / 1e9, stamp.ctime_ns / 1e9)
    return max((each for each in seconds if each <= now + CLOCKS_DIFFER), default=-math.inf)
