"""Kernel file locks, awaited. They vanish with the process that held them, also after kill -9."""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.25


def belong(file: int, folder: Path) -> None:
    """Give an open file to the owner of its folder: root in a user's home must not lock the user out."""
    if os.geteuid() == 0:
        status = folder.stat()
        os.fchown(file, status.st_uid, status.st_gid)


class FileLock:
    """One open lock file. Every instance counts for itself, also inside one process."""

    def __init__(self, path: Path) -> None:
        # O_NOFOLLOW: a planted link must not make us open, as root, what it points to.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        belong(self._file, path.parent)

    def try_exclusive(self) -> bool:
        """Take it for this holder alone; False when anybody else has it."""
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        """Take it beside other sharers; False when somebody has it alone."""
        return self._try(fcntl.LOCK_SH)

    def fileno(self) -> int:
        """The descriptor, for a child that shall hold the lock too."""
        return self._file

    def release(self) -> None:
        """Let it go, and close the file. A child that has the descriptor keeps the lock."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@contextmanager
def held_if_free(path: Path) -> Iterator[bool]:
    """Whether nobody holds the lock file `path`, and if so, hold it alone meanwhile.

    Does not wait, and does not make the file: none is held by nobody.

    Raises:
        OSError: it is none that this process may lock.
    """
    try:
        file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(file)


@asynccontextmanager
async def exclusive(path: Path, on_wait: Callable[[], None]) -> AsyncIterator[None]:
    """Hold the lock file `path` alone; `on_wait` is called once if it has to be waited for.

    A blocking flock in a thread could not be cancelled, hence the growing pauses.
    """
    lock, pause = FileLock(path), _FIRST_WAIT
    try:
        while not lock.try_exclusive():
            if pause == _FIRST_WAIT:
                on_wait()
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_WAIT)
        yield
    finally:
        lock.release()
