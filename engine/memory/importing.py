"""Importing: conversations that other programs kept become evidence and packets of a brain.

It can be repeated and broken off: what is known is passed over by its key, and each batch is one transaction.
Files are taken by the time of their first message, the oldest first, so that a correction comes after what it
corrects. What was passed over is counted by its reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

import psycopg

from engine.brain.channels import Origin, channel_of, known_keys
from engine.errors import SourceError, TurnError
from engine.memory.brains import entered
from engine.memory.imported import ImportReport
from engine.memory.importers import READERS, kind_of
from engine.memory.importers.lines import moment
from engine.memory.importers.model import Exchange, ImportedTurn, Skip
from engine.memory.importers.turns import paired
from engine.memory.keeping import Turn, keep, named, sayable
from engine.memory.packets import storable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from engine.database import Database
    from engine.memory.meaning import Meaning
    from engine.memory.model import BrainKey

BATCH = 100
"""Exchanges a transaction: a second's work, and what is lost when it is broken off."""

MANY = 1_000
"""Packets after which the planner has to learn what it knows of the tables anew."""

SETTLED_SECONDS = 600.0
"""Age of a file from which its last question is taken without an answer: before, one may be written yet."""

LOOK_SECONDS = 2.0
"""Between two looks at files that are followed."""

WAITS = "waits for its answer"

_log = logging.getLogger("noctuary.memory")


@dataclass(slots=True)
class _Tally:
    """What an import has done so far."""

    kind: str
    path: str
    dry_run: bool
    files: int = 0
    turns: int = 0
    packets: int = 0
    known: int = 0
    masked: int = 0
    recalled: int = 0
    channels: set[str] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def skip(self, origin: str, reason: str) -> None:
        self.skipped[reason] += 1
        self.examples.setdefault(reason, origin)

    def report(self) -> ImportReport:
        return ImportReport(
            kind=self.kind,
            path=self.path,
            dry_run=self.dry_run,
            files=self.files,
            turns=self.turns,
            packets=self.packets,
            known=self.known,
            masked=self.masked,
            recalled=self.recalled,
            channels=len(self.channels),
            skipped=dict(self.skipped.most_common()),
            examples=dict(self.examples),
        )


class Importing:
    """Imports into brains."""

    def __init__(self, database: Database, meaning: Meaning) -> None:
        self._database = database
        self._meaning = meaning

    async def run(
        self,
        kind: str,
        path: Path,
        key: BrainKey,
        *,
        dry_run: bool = False,
        settled: bool = False,
        on_progress: Callable[[ImportReport], object] | None = None,
    ) -> ImportReport:
        """Import what is new in a file, or in the files of the kind in a folder. With `dry_run` nothing is
        kept, and the report tells what would be. `settled` takes the last question also where its file was
        written just now: whoever says so knows that its answer is there.

        Raises:
            SourceError: there is no such kind, path or file, or a file is none of the kind.
            CoreUnknown: the account has no such core.
        """
        origin = kind_of(kind)
        tally = _Tally(origin, str(path), dry_run)
        async with entered(self._database, key):
            pass  # a core that is not there is told before anything is read
        found = await asyncio.to_thread(_files, origin, path)
        for file in await asyncio.to_thread(_oldest_first, origin, found):
            await self._file(origin, file, key, tally, settled=settled, on_progress=on_progress)
        if tally.packets >= MANY and not dry_run:
            async with self._database.connection() as connection:
                await connection.execute("SELECT refresh_memory_statistics()")
        return tally.report()

    async def follow(
        self,
        kind: str,
        path: Path,
        key: BrainKey,
        *,
        on_report: Callable[[ImportReport], object] | None = None,
    ) -> None:
        """Import as files grow, until cancelled; `on_report` hears of each time that anything came.

        Raises:
            SourceError: as `run`, at its first look.
            CoreUnknown: the account has no such core.
        """
        origin = kind_of(kind)
        async with entered(self._database, key):
            pass
        await asyncio.to_thread(_files, origin, path)  # that there is nothing is told at the first look
        stamps: dict[Path, tuple[int, int]] = {}
        waiting: set[Path] = set()
        while True:
            tally = _Tally(origin, str(path), dry_run=False)
            for file in await asyncio.to_thread(_changed, origin, path, stamps, waiting):
                if await self._file(origin, file, key, tally, settled=False):
                    waiting.add(file)
            if tally.packets and on_report is not None:
                on_report(tally.report())
            await asyncio.sleep(LOOK_SECONDS)

    async def _file(
        self,
        kind: Origin,
        file: Path,
        key: BrainKey,
        tally: _Tally,
        *,
        settled: bool,
        on_progress: Callable[[ImportReport], object] | None = None,
    ) -> bool:
        """One file, batch by batch; the parsing is done in a thread. Whether something in it waits."""
        tally.files += 1
        before = tally.skipped[WAITS]
        try:
            written = (await asyncio.to_thread(file.stat)).st_mtime
            settled = settled or time.time() - written > SETTLED_SECONDS
            exchanges = paired(_read(kind, file))
            while batch := await asyncio.to_thread(lambda: list(islice(exchanges, BATCH))):
                await self._batch(kind, batch, key, tally, written=written, settled=settled)
                if on_progress is not None:
                    on_progress(tally.report())
        except OSError as error:
            tally.skip(file.name, f"cannot be read: {error.strerror or error}")
            _log.warning("%s was not imported: %s", file, error)
        return tally.skipped[WAITS] > before

    async def _batch(
        self,
        kind: Origin,
        batch: Sequence[Exchange | Skip],
        key: BrainKey,
        tally: _Tally,
        *,
        written: float,
        settled: bool,
    ) -> None:
        by_channel: dict[str, list[Exchange]] = {}
        for each in batch:
            if isinstance(each, Skip):
                tally.skip(each.origin, each.reason)
            elif not each.complete and not settled:
                tally.skip(each.origin, WAITS)
            else:
                exchange = _keepable(each)
                by_channel.setdefault(exchange.channel, []).append(exchange)
        for channel, exchanges in by_channel.items():
            await self._channel((kind, channel), exchanges, key, tally, written=written)

    async def _channel(
        self,
        where: tuple[Origin, str],
        exchanges: Sequence[Exchange],
        key: BrainKey,
        tally: _Tally,
        *,
        written: float,
    ) -> None:
        """The exchanges of one channel (its kind and name), in one transaction."""
        kind, channel = where
        tally.channels.add(channel)
        async with entered(self._database, key, make=True) as (connection, brain):
            into = await channel_of(connection, brain, channel, kind)
            known = await known_keys(connection, brain, into, [each.key for each in exchanges])
            new = list({each.key: each for each in exchanges if each.key not in known}.values())
            tally.known += len(exchanges) - len(new)
            turns = await asyncio.to_thread(_turns, new, written, tally)
            models = [model.id for model in self._meaning.models()]
            kept = await keep(connection, brain, into, turns, models) if turns else []
            tally.packets += len(kept)
            tally.recalled += sum(each.recalled for each in kept)
            if tally.dry_run:
                raise psycopg.Rollback  # which ends the transaction, and goes no further


def _read(kind: Origin, file: Path) -> Iterator[ImportedTurn | Skip]:
    return READERS[kind].read(file)


def _keepable(exchange: Exchange) -> Exchange:
    """With names that may be kept: a file, its names and its keys may be called anything."""
    return replace(
        exchange,
        key=storable(exchange.key),
        channel=named(exchange.channel),
        origin=storable(exchange.origin),
        speaker=named(exchange.speaker),
    )


def _turns(exchanges: Sequence[Exchange], written: float, tally: _Tally) -> list[Turn]:
    """What may be kept of exchanges; what may not is counted. A turn without a time is as old as its file."""
    turns = []
    now = datetime.now(UTC)
    for each in exchanges:
        try:
            said = sayable(each.input, "What was said")
            answered = sayable(each.response, "The answer") if each.response else None
        except TurnError as error:
            tally.skip(each.origin, error.message.rstrip("."))
            continue
        at = min(each.at or moment(written) or now, now)
        turns.append(Turn(said, answered, at, each.speaker, each.origin, each.key))
        tally.turns += 1 + (answered is not None)
        tally.masked += said.masked + (answered.masked if answered else 0)
    return turns


def _files(kind: Origin, path: Path) -> list[Path]:
    """The files of the kind.

    Raises:
        SourceError: there is nothing there to import.
    """
    if not path.exists():
        raise SourceError(f"There is no {path}.")
    found = READERS[kind].files(path)
    if not found:
        raise SourceError(f"There is nothing of {kind} below {path}.")
    return found


def _oldest_first(kind: Origin, files: Iterable[Path]) -> list[Path]:
    """The files by the time of their first message."""
    return sorted(files, key=lambda file: (_begun(kind, file), file))


def _begun(kind: Origin, file: Path) -> float:
    """When the first message of a file was. Of one that tells no time, and of ChatGPT's, which is read whole,
    when it was written.
    """
    with suppress(OSError, SourceError):
        if kind is not Origin.CHATGPT:
            for each in islice(_read(kind, file), 100):
                if isinstance(each, ImportedTurn) and each.at is not None:
                    return each.at.timestamp()
        return file.stat().st_mtime
    return 0.0


def _changed(kind: Origin, path: Path, stamps: dict[Path, tuple[int, int]], waiting: set[Path]) -> list[Path]:
    """The files that were written since the last look, or in which something waited long enough, the oldest
    first; `stamps` and `waiting` are brought up to date. Nothing is read of the others.
    """
    changed = []
    for file in _files(kind, path):
        try:
            status = file.stat()
        except OSError:
            continue  # gone since
        stamp = (status.st_mtime_ns, status.st_size)
        settled = file in waiting and time.time() - status.st_mtime > SETTLED_SECONDS
        if stamps.get(file) != stamp or settled:
            stamps[file] = stamp
            waiting.discard(file)
            changed.append(file)
    return _oldest_first(kind, changed)
