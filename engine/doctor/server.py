"""The embedded server as it is found before anything is opened: each state a sentence with its remedy."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from engine.database.embedded import mending
from engine.database.embedded.cluster import check_rights
from engine.database.embedded.condition import Condition, Life, look
from engine.doctor.check import Check, Finding, State, failed
from engine.errors import DatabaseRefused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.database import OnState
    from engine.database.embedded.places import Places
    from engine.database.embedded.process import PidFile

NAME = "server"

BUSY_SECONDS = 10.0
"""A start or a stop of the server is mostly over by then."""

_PAUSE = 0.1
_FIX = "`noctuary doctor --fix`"
_RECOVERED = "It recovered at this start; what was committed is there."
_ANEW = "Put the data folder back from a copy, or move it aside to begin anew."


async def server_findings(places: Places, on_state: OnState) -> list[Finding]:
    """What is to be said of the server of `places`. Nothing is changed."""
    condition = await _settled(places, on_state)
    found = [*_findings(condition, places, on_state), *_unfinished(condition, places)]
    return [*(found or [Finding(_well(condition))]), *_put_aside(places)]


async def _settled(places: Places, on_state: OnState) -> Condition:
    """The condition when nobody starts or stops the server, or after `BUSY_SECONDS`."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        condition = await asyncio.to_thread(look, places)
        if condition.life is not Life.BUSY or time.monotonic() > end:
            on_state("")
            return condition
        on_state("waiting for another process to start or stop the database")
        await asyncio.sleep(_PAUSE)


def _findings(condition: Condition, places: Places, on_state: OnState) -> Iterator[Finding]:
    if condition.refusal:
        left = "What is there may be somebody's only copy."
        yield Finding(failed(NAME, condition.refusal, left=left), blocks=True)
    elif condition.life is Life.BUSY:
        yield _busy(places)
    elif condition.life is Life.RUNNING:
        yield from _running(condition, places, on_state)
    elif condition.life is Life.ENDING:
        sentence = "The first process of the server was killed, and the others are ending."
        yield Finding(_warned(sentence, "The next start waits for them and recovers."), opening=_RECOVERED)
    else:
        yield from _stopped(condition, places)
    if condition.rights is not None:
        yield from _rights(places, blocks=condition.life is not Life.RUNNING)


def _busy(places: Places) -> Finding:
    sentence = f"Another process has been starting or stopping it for more than {BUSY_SECONDS:.0f} seconds."
    remedy = f"Wait, and look again. `fuser {places.lock}` tells which it is, should it hang."
    left = "It may be at work, and is not disturbed."
    return Finding(Check(NAME, State.WARN, sentence, remedy, left=left), blocks=True)


def _running(condition: Condition, places: Places, on_state: OnState) -> Iterator[Finding]:
    server = f"The server (process {condition.pid})"

    async def stop() -> str:
        await mending.stop_unused(places, on_state)
        return f"Process {condition.pid} was stopped in order."

    if condition.suspended:
        sentence = f"{server} is suspended, and answers nobody."
        remedy = f"Let it go on: `kill -CONT {condition.pid}`."
        yield Finding(
            Check(NAME, State.FAIL, sentence, remedy, left="Somebody may have stopped it on purpose."),
            blocks=True,
        )
    elif not condition.reachable:
        sentence = f"{server} runs, but its socket is gone: nobody new can reach it."
        if condition.used:
            remedy = "End every Noctuary: the last one stops it, and the next start makes the socket anew."
            check = Check(NAME, State.FAIL, sentence, remedy, left="It is in use.")
            yield Finding(check, blocks=True)
        else:
            remedy = f"{_FIX} stops it; the next start makes the socket anew."
            yield Finding(Check(NAME, State.FAIL, sentence, remedy), blocks=True, mend=stop)
    elif condition.stale:
        names = " and ".join(file.path.name for file in condition.stale)
        sentence = f"{server} runs, but is not named by {names}."
        remedy = "PostgreSQL notices within a minute and ends; the next start recovers."
        yield Finding(Check(NAME, State.WARN, sentence, remedy, left="It mends itself."))
    elif not condition.used:
        sentence = f"{server} runs, but nobody uses it: a program that did was killed."
        yield Finding(
            _warned(sentence, "The next program that ends in order stops it."),
            opening="It was joined, and the last who uses it stops it.",
            mend=stop,
        )


def _stopped(condition: Condition, places: Places) -> Iterator[Finding]:
    control = condition.control
    crashed = control is not None and not control.orderly
    if control and control.damage:
        sentence = f"The control file of {places.folder} cannot be relied on: {control.damage}."
        left = "Making another would guess what was committed."
        yield Finding(Check(NAME, State.FAIL, sentence, _ANEW, left=left), blocks=True)
        return
    if crashed:
        sentence = "It was not shut down in order, as after a power loss, a full disk or kill -9."
        yield Finding(_warned(sentence, "It recovers at the next start."), opening=_RECOVERED)
    for file in condition.stale:
        # After a crash the number of a process that is gone is nothing of its own.
        if not crashed or file.pid is None or file.program:
            yield _stale(file)


def _stale(file: PidFile) -> Finding:
    name, done = file.path.name, f"It was set aside as {file.path.name}.stale."
    if file.pid is None:
        sentence = f"{name} is empty or torn, as after a power loss."
    elif file.program:
        sentence = f"{name} names process {file.pid}, which is another program's ({file.program})."
        done += " The process was let be."
    else:
        sentence = f"{name} names process {file.pid}, which is gone."
    return Finding(_warned(sentence, "The next start sets it aside."), opening=done)


def _rights(places: Places, *, blocks: bool) -> Iterator[Finding]:
    async def close() -> str:
        mending.close_to_others(places)
        return f"They were set to {mending.OWNER_ONLY:04o}; nothing above or below it was changed."

    try:
        check_rights(places.folder)
    except DatabaseRefused as error:
        yield Finding(failed(NAME, error), blocks=blocks, mend=close)


def _unfinished(condition: Condition, places: Places) -> Iterator[Finding]:
    async def aside() -> str:
        return f"It was put aside as {mending.put_unfinished_aside(places).name}, with all that is in it."

    if condition.unfinished:
        absent = condition.life is Life.ABSENT
        yield Finding(
            _warned(
                f"A first start was interrupted, and left {places.unfinished} half made.",
                "The next start puts it aside." if absent else f"{_FIX} puts it aside.",
            ),
            opening="It was put aside, with all that is in it, and the database made anew." if absent else "",
            mend=aside,
        )


def _put_aside(places: Places) -> Iterator[Finding]:
    names = sorted(path.name for path in places.data.glob(f"{places.unfinished.name}.stale*"))
    if names:
        sentence = f"Put aside earlier, and used by nothing: {', '.join(names)}."
        yield Finding(Check(NAME, State.OK, sentence, f"They may be removed from {places.data}."))


def _well(condition: Condition) -> Check:
    if condition.life is Life.ABSENT:
        sentence = "There is no database yet; the first start makes it."
    elif condition.life is Life.RUNNING:
        sentence = f"It runs (process {condition.pid}) and is in use."
    elif condition.control is None:
        sentence = "It does not run."
    else:
        sentence = "It does not run; it was shut down in order."
    return Check(NAME, State.OK, sentence)


def _warned(sentence: str, remedy: str) -> Check:
    return Check(NAME, State.WARN, sentence, remedy)
