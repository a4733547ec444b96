"""`noctuary recall`, `remember`, `prepare`, `verify` and `record`: a turn's way through memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, output, parameters, remembering, session
from engine.text.amounts import count

if TYPE_CHECKING:
    from datetime import datetime

    from engine import Engine
    from engine.memory.model import Contradiction, Prepared, Recalled, Recorded, Verified

DOOR = "cli"
MOST_SOURCES = 50

CATCH_UP_SECONDS = 3.0
"""What a command waits at most for the vectors of what was kept just now: where no console runs, nobody else
makes them.
"""

WORDS = click.argument("words", nargs=-1, required=True, metavar="TEXT")
CHANNEL = click.option(
    "--channel", type=parameters.TEXT, help="The conversation it belongs to. Without it that of the day."
)
WHEN = click.option(
    "--at",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]),
    help="When it was said, if not now; UTC where it tells no zone.",
)
TOKEN_HELP = "The turn's token, as `noctuary prepare` printed it."  # noqa: S105 - a help text


@click.command()
@WORDS
@click.option("--k", type=click.IntRange(1, MOST_SOURCES), help="How many turns at most.")
@parameters.whose
@parameters.JSON
def recall(
    words: tuple[str, ...], *, k: int | None, core: str | None, user: str | None, as_json: bool
) -> int:
    """Recall what is known of a text; - reads it from standard input.

    Learned rules come first, then the turns, the best first. Exit status 1 when nothing is known.
    """
    text = parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        await engine.memory.catch_up(CATCH_UP_SECONDS)
        found = await engine.memory.recall(remembering.key(engine.settings, core, user), text, k)
        if as_json:
            output.dump(_recalled(found))
        else:
            _print_recalled(found)
        for sentence in found.notes:
            output.note(sentence)
        return exits.DONE if found.lessons or found.sources else exits.FOUND_NOTHING

    return session.run(work, application="noctuary recall")


@click.command()
@WORDS
@click.option("--response", type=parameters.TEXT, help="What was answered to it.")
@click.option("--speaker", type=parameters.TEXT, help="Who said it, if not the user.")
@CHANNEL
@WHEN
@parameters.whose
@parameters.JSON
def remember(
    words: tuple[str, ...],
    *,
    response: str | None,
    speaker: str | None,
    channel: str | None,
    at: datetime | None,
    core: str | None,
    user: str | None,
    as_json: bool,
) -> int:
    """Keep something that was said; - reads it from standard input. Keys and passwords are masked."""
    text = parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        kept = await engine.memory.remember(
            remembering.key(engine.settings, core, user),
            text,
            response=response or "",
            speaker=speaker or "",
            channel=channel,
            occurred_at=at,
            door=DOOR,
        )
        return _tell_recorded(kept, as_json=as_json)

    return session.run(work, application="noctuary remember")


@click.command()
@WORDS
@click.option("--constitution", type=parameters.TEXT, help="A file in constitutions/, by its name.")
@CHANNEL
@parameters.whose
@parameters.JSON
def prepare(
    words: tuple[str, ...],
    *,
    constitution: str | None,
    channel: str | None,
    core: str | None,
    user: str | None,
    as_json: bool,
) -> int:
    """Prepare a turn: the messages for a model, and a token to record its answer with.

    - reads the turn from standard input. No model is called. Exit status 1 when the turn is declined.
    """
    text = parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        await engine.memory.catch_up(CATCH_UP_SECONDS)
        turn = await engine.memory.prepare(
            remembering.key(engine.settings, core, user),
            text,
            constitution=constitution,
            channel=channel,
            door=DOOR,
        )
        if as_json:
            output.dump(_prepared(turn))
        else:
            _print_prepared(turn)
        for sentence in turn.recalled.notes:
            output.note(sentence)
        return exits.DONE if turn.allowed else exits.FOUND_NOTHING

    return session.run(work, application="noctuary prepare")


@click.command()
@WORDS
@click.option("--token", type=parameters.TEXT, help=TOKEN_HELP)
@parameters.whose
@parameters.JSON
def verify(
    words: tuple[str, ...], *, token: str | None, core: str | None, user: str | None, as_json: bool
) -> int:
    """Hold an answer against what is known, before it is given; - reads it from standard input.

    Nothing is kept, and no token used up. Exit status 1 when it contradicts what is known.
    """
    answer = parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        await engine.memory.catch_up(CATCH_UP_SECONDS)
        found = await engine.memory.verify(remembering.key(engine.settings, core, user), answer, token)
        if as_json:
            output.dump(found)
        else:
            _print_verified(found)
        return exits.DONE if found.ok else exits.FOUND_NOTHING

    return session.run(work, application="noctuary verify")


@click.command()
@WORDS
@click.option("--token", type=parameters.TEXT, required=True, help=TOKEN_HELP)
@WHEN
@parameters.whose
@parameters.JSON
def record(
    words: tuple[str, ...],
    *,
    token: str,
    at: datetime | None,
    core: str | None,
    user: str | None,
    as_json: bool,
) -> int:
    """Keep a prepared turn with its answer; - reads it from standard input.

    The same again changes nothing.
    """
    answer = parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        key = remembering.key(engine.settings, core, user)
        kept = await engine.memory.record(key, token, answer, occurred_at=at)
        return _tell_recorded(kept, as_json=as_json)

    return session.run(work, application="noctuary record")


def _recalled(found: Recalled) -> dict[str, Any]:
    return {
        "lessons": found.lessons,
        "sources": found.sources,
        "coherence": found.coherence,
        "notes": found.notes,
    }


def _prepared(turn: Prepared) -> dict[str, Any]:
    """A prepared turn for JSON; Khwan's names first."""
    return {
        "messages": turn.messages,
        "coherence": turn.coherence,
        "lessons": [lesson.text for lesson in turn.recalled.lessons],
        "sources": turn.recalled.sources,
        "allowed": turn.allowed,
        "reason": turn.reason,
        "turn_token": turn.turn_token,
        "contradiction": turn.contradiction,
        "notes": turn.recalled.notes,
    }


def _print_recalled(found: Recalled) -> None:
    for lesson in found.lessons:
        output.say(f"rule: {remembering.rule(lesson)}")
    for source in found.sources:
        output.say(remembering.said(source))
        output.say_text(output.indent(source.input))
        if source.response:
            output.say("  The answer was:")
            output.say_text(output.indent(source.response))
    if not found.lessons and not found.sources:
        output.say(remembering.NOT_KNOWN)


def _print_prepared(turn: Prepared) -> None:
    if not turn.allowed:
        output.say(f"The turn is declined: {turn.reason}")
        return
    for message in turn.messages:
        output.say(f"{message['role']}:")
        output.say_text(output.indent(message["content"]))
    _print_contradiction(turn.contradiction)
    output.say(f"turn token: {turn.turn_token}")


def _print_verified(found: Verified) -> None:
    output.say("It contradicts what is known." if not found.ok else "Nothing that is known contradicts it.")
    _print_contradiction(found.contradiction)
    if found.coherence is not None:
        output.say(f"coherence: {found.coherence:.2f}")


def _print_contradiction(found: Contradiction | None) -> None:
    if found is not None:
        output.say(f"contradiction: {found}")


def _tell_recorded(kept: Recorded, *, as_json: bool) -> int:
    if as_json:
        output.dump(kept)
        return exits.DONE
    output.say(f"Kept{' before' if kept.again else ''}, as turn {kept.packet} ({kept.kind}).")
    if kept.masked:
        output.note(f"{count(kept.masked, 'secret')} in it masked.")
    if kept.recalled:
        output.note("It repeats what was recalled: nothing is learned from it.")
    if kept.contradiction is not None:
        output.note(f"It contradicts what is known. {kept.contradiction}.")
    return exits.DONE
