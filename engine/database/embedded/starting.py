"""From whatever state the last run left the data folder in to a server that answers.

What counts is the socket, then the process, and `postmaster.pid` last. The caller holds the start
lock, so nobody else starts or stops this server meanwhile.
"""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import TYPE_CHECKING

import psycopg

from engine.database.address import Address
from engine.database.connecting import Connection, connect_raw, later
from engine.database.embedded import cluster, process
from engine.database.embedded.account import account_for, give
from engine.database.embedded.flock import FileLock
from engine.database.embedded.locate import programs_for
from engine.database.embedded.socketpath import SocketFolder
from engine.errors import DatabaseUnavailable

if TYPE_CHECKING:
    import subprocess

    from engine.database.embedded.places import Places
    from engine.database.model import OnState

DATABASE = "noctuary"

# Replaying the log after a crash is bounded by max_wal_size, but a slow disk takes minutes for it.
START_SECONDS = 900.0
# A live server whose socket is silent is about to answer, about to end, or stuck. After kill -9 of
# its first process, the others end when they next look: at once, unless in a long statement.
MUTE_SECONDS = 120.0
STOP_SECONDS = 60.0
# What is over by then is not worth a word on the screen.
_QUIET_SECONDS = 0.5

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.25


class Answer(Enum):
    """What the socket says."""

    READY = auto()
    LATER = auto()
    SILENCE = auto()


class Pause:
    """Growing waits up to a deadline."""

    def __init__(self, seconds: float) -> None:
        self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        self._seconds = seconds
        self._next = _FIRST_PAUSE

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return self._clock() - self._start > self._seconds

    @property
    def worth_a_word(self) -> bool:
        """Whether it takes long enough for the user to wonder."""
        return self._clock() - self._start > _QUIET_SECONDS

    async def wait(self) -> None:
        """The next pause."""
        await asyncio.sleep(self._next)
        self._next = min(self._next * 1.5, _LONGEST_PAUSE)


async def ensure_cluster(places: Places, on_state: OnState) -> None:
    """See to it that there is a data folder; make one where there is none."""
    account = account_for(places.folder)
    if not cluster.exists(places.folder):
        on_state("making the database")
        await cluster.make(places, await asyncio.to_thread(programs_for, account), account)


async def ensure_running(places: Places, on_state: OnState) -> None:
    """Return when the server answers, having started it if it had to be.

    Raises:
        DatabaseUnavailable: it does not start, or does not answer in time.
        DatabaseRefused: its folder is open to others, which PostgreSQL does not bear.
    """
    socket, serving = SocketFolder(places.folder), FileLock(places.serving)
    try:
        address = Address.of_folder(str(places.folder), socket.host, DATABASE)
        if not await _comes_up(address, places, serving, on_state):
            on_state("starting the database")
            await _launch(address, places, serving, on_state)
    finally:
        serving.release()
        socket.close()


async def ensure_database(address: Address, maintenance: Address) -> None:
    """Create the program's database, whose locale is the same on every system.

    `builtin` C.UTF-8 knows upper and lower case of all of Unicode whatever LANG says and does not
    change with the system's C library.
    """
    try:
        connection = await connect_raw(address.admin("noctuary"))
    except psycopg.OperationalError as error:
        if "does not exist" not in str(error):
            raise
        connection = await connect_raw(maintenance.admin("noctuary"))
        await _create(connection)
    await connection.close()


async def stop(places: Places, on_state: OnState) -> None:
    """Shut the server down and wait until the last of its processes has ended."""
    serving, pause = FileLock(places.serving), Pause(STOP_SECONDS)
    try:
        process.interrupt(places.folder)
        while not (serving.try_exclusive() and process.reaped(places.folder)):
            if pause.over:  # it ends on its own; whoever starts next waits for that
                return
            if pause.worth_a_word:
                on_state("the database is writing to the disk")
            await pause.wait()
    finally:
        serving.release()


async def _comes_up(address: Address, places: Places, serving: FileLock, on_state: OnState) -> bool:
    """Whether a live server answers; False when there is none: `serving` is ours then."""
    patience, mute = Pause(START_SECONDS), Pause(MUTE_SECONDS)
    while True:
        answer = await _ask(address)
        if answer is Answer.READY:
            return True
        silent = answer is Answer.SILENCE
        if silent and serving.try_exclusive():
            return False
        if patience.over or (silent and mute.over):
            raise DatabaseUnavailable(
                f"The database server of {places.folder} (process {process.find(places.folder)}) does not"
                " answer.",
                remedy="Wait for it to end, or end it, and start again.",
            )
        if patience.worth_a_word:
            on_state("waiting for the database to end" if silent else "the database is recovering")
        await patience.wait()


async def _launch(address: Address, places: Places, serving: FileLock, on_state: OnState) -> None:
    folder, log = places.folder, places.log
    account = account_for(folder)
    cluster.check_rights(folder)
    programs = await asyncio.to_thread(programs_for, account)
    await asyncio.to_thread(give, folder, account)
    process.reaped(folder)
    process.rotate(log)
    process.set_aside(folder)
    since = process.log_size(log)
    try:
        server = process.start(folder, programs, account, log, serving)
    except OSError as error:
        raise DatabaseUnavailable(f"The database server cannot be started: {error}.") from error
    if not await _ready(server, address, on_state):
        words = process.last_words(log, since) or "it gave no reason"
        raise DatabaseUnavailable(
            f"The database server of {folder} does not start: {words}.", remedy=f"Its log is {log}."
        )


async def _ready(server: subprocess.Popen[bytes], address: Address, on_state: OnState) -> bool:
    """Whether the server just started answers; False when it ended instead."""
    patience = Pause(START_SECONDS)
    while server.poll() is None:
        answer = await _ask(address)
        if answer is Answer.READY:
            return True
        if patience.over:
            raise DatabaseUnavailable(f"The database server at {address.where} does not become ready.")
        if patience.worth_a_word:
            on_state("the database is recovering")
        await patience.wait()
    return False


async def _ask(address: Address) -> Answer:
    try:
        connection = await connect_raw(address.admin("noctuary"))
    except psycopg.OperationalError as error:
        if later(error):
            return Answer.LATER
        # Any other refusal is an answer too; whoever connects next reports it.
        return Answer.READY if "FATAL" in str(error) else Answer.SILENCE
    await connection.close()
    return Answer.READY


async def _create(connection: Connection) -> None:
    try:
        await connection.execute(
            f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
            " LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'"
        )
    finally:
        await connection.close()
