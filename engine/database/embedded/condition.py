"""What state the embedded server and its data folder are in. Looking changes nothing and starts nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from engine.database.embedded import cluster, process
from engine.database.embedded.account import account_for
from engine.database.embedded.control import Control, read_control
from engine.database.embedded.flock import held_if_free
from engine.database.embedded.locate import programs_at_hand
from engine.database.embedded.socketpath import SOCKET, check_reachable
from engine.errors import DatabaseError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database.embedded.places import Places
    from engine.database.embedded.process import PidFile


class Life(Enum):
    """Whether a server lives."""

    BUSY = auto()
    """Another process starts or stops it at this moment, so nothing else can be told."""
    ABSENT = auto()
    """There is no database yet."""
    STOPPED = auto()
    RUNNING = auto()
    ENDING = auto()
    """Its first process is gone; others of it still write."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What was found. `refusal` is why nothing more could be, and why nothing would start."""

    life: Life
    refusal: DatabaseError | None = None
    unfinished: bool = False
    """A first start was interrupted, and its half-made data folder is still there."""
    rights: int | None = None
    """The permissions of the data folder, if PostgreSQL would not start with them."""
    pid: int | None = None
    """The first process of the server that runs."""
    used: bool = False
    """Some process of the program counts as its user."""
    suspended: bool = False
    reachable: bool = True
    """The socket is there."""
    stale: tuple[PidFile, ...] = ()
    """Lock files of the server that no server owns, or that do not name the one that runs."""
    control: Control | None = None
    """What the control file says; None while a server lives, or when it cannot be asked."""


def look(places: Places) -> Condition:
    """The condition now. The lock files are held for the moment that it takes, so others wait for that."""
    try:
        with held_if_free(places.lock) as quiet:
            return _at_rest(places) if quiet else Condition(Life.BUSY)
    except DatabaseError as error:
        return Condition(Life.STOPPED, refusal=error)
    except OSError as error:
        return Condition(Life.STOPPED, refusal=cluster.unusable(places.folder, error))


def _at_rest(places: Places) -> Condition:
    unfinished = places.unfinished.exists()
    account_for(places.folder)
    check_reachable(places.folder)
    rights = cluster.wrong_rights(places.folder) if places.folder.is_dir() else None
    with held_if_free(places.users) as unused, held_if_free(places.serving) as ended:
        try:
            if not cluster.exists(places.folder):
                return Condition(Life.ABSENT, unfinished=unfinished)
            if ended and process.find(places.folder) is None:
                return _stopped(places.folder, rights, unfinished=unfinished)
            return _alive(places.folder, rights, used=not unused, unfinished=unfinished)
        except PermissionError:
            if rights is None:
                raise
            return Condition(Life.STOPPED, rights=rights, unfinished=unfinished)


def _stopped(folder: Path, rights: int | None, *, unfinished: bool) -> Condition:
    account = account_for(folder)
    programs = programs_at_hand(account)
    return Condition(
        Life.STOPPED,
        unfinished=unfinished,
        rights=rights,
        stale=tuple(process.pid_files(folder)),
        control=read_control(folder, programs, account) if programs else None,
    )


def _alive(folder: Path, rights: int | None, *, used: bool, unfinished: bool) -> Condition:
    named = process.find(folder)
    pid = named or process.find_anywhere(folder)
    return Condition(
        Life.RUNNING if pid else Life.ENDING,
        unfinished=unfinished,
        rights=rights,
        pid=pid,
        used=used,
        suspended=pid is not None and process.is_suspended(pid),
        reachable=(folder / SOCKET).exists(),
        stale=tuple(file for file in process.pid_files(folder) if file.pid != pid) if pid else (),
    )
