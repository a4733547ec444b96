"""What can safely be put right about the embedded server from outside, each under the start lock.

Nothing is removed, and no process is signalled but the server of this data folder.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.database.embedded import cluster, starting
from engine.database.embedded.flock import FileLock, held_if_free
from engine.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.database.embedded.places import Places
    from engine.database.model import OnState

OWNER_ONLY = 0o700


async def stop_unused(places: Places, on_state: OnState) -> None:
    """Stop the server in order, since nobody uses it.

    Raises:
        DatabaseUnavailable: somebody uses it by now, or it does not end.
        OSError: a lock file cannot be used.
    """
    with _alone(places):
        with held_if_free(places.users) as unused:
            if not unused:
                raise DatabaseUnavailable("The database server came into use meanwhile.")
            await starting.stop(places, on_state)
        with held_if_free(places.serving) as ended:
            if not ended:
                raise DatabaseUnavailable("The database server does not end.")


def put_unfinished_aside(places: Places) -> Path:
    """Rename what an interrupted first start left; its new name.

    Raises:
        DatabaseUnavailable: another process is just making it.
        OSError: it cannot be renamed.
    """
    with _alone(places):
        return cluster.put_aside(places.unfinished)


def close_to_others(places: Places) -> None:
    """Make the data folder its owner's alone; nothing above or below it changes.

    Raises:
        OSError: it is not this user's.
    """
    places.folder.chmod(OWNER_ONLY)


@contextmanager
def _alone(places: Places) -> Iterator[None]:
    lock = FileLock(places.lock)
    try:
        if not lock.try_exclusive():
            raise DatabaseUnavailable("Another process is starting or stopping the database.")
        yield
    finally:
        lock.release()
