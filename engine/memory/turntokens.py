"""Tokens of prepared turns: single-use, expiring, and good in the brain they were given out for alone.

Only a token's hash is kept. A token that was used with one answer gives the same outcome for the same answer
again, so that a caller who never heard the first may ask once more; it learns nothing twice.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import TurnGone

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from psycopg import AsyncConnection

BYTES = 32
"""Of randomness in a token."""

_GIVE_OUT = """
    INSERT INTO turn_token
        (brain, hash, input, masked, channel, door, sources, lessons, coherence, expires_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, now() + make_interval(mins => %s))
"""

_TAKE = """
    SELECT input, masked, channel, door, sources, lessons, expires_at <= now(), used_at, answer_hash, packet
    FROM turn_token WHERE brain = %s AND hash = %s
"""

_USED = """
    UPDATE turn_token SET used_at = now(), answer_hash = %s, packet = %s, input = ''
    WHERE brain = %s AND hash = %s
"""

# A used one is kept for as long as its outcome may be asked for again.
_TIDY = "DELETE FROM turn_token WHERE brain = %s AND expires_at < now() - interval '1 day'"


@dataclass(frozen=True, slots=True)
class Turn:
    """A prepared turn. `packet` is what came of it, once its token was used."""

    hash: bytes
    input: str
    masked: int
    channel: str | None
    door: str
    sources: tuple[int, ...]
    lessons: tuple[int, ...]
    used_at: datetime | None
    packet: int | None


def digest(text: str) -> bytes:
    """sha256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


async def give_out(
    connection: AsyncConnection,
    brain: int,
    text: str,
    *,
    masked: int,
    channel: str | None,
    door: str,
    sources: Sequence[int],
    lessons: Sequence[int],
    coherence: float | None,
    minutes: int,
) -> str:
    """A new token for a turn; old ones are tidied away."""
    token = secrets.token_urlsafe(BYTES)
    await connection.execute(_TIDY, (brain,))
    await connection.execute(
        _GIVE_OUT,
        (brain, digest(token), text, masked, channel, door, list(sources), list(lessons), coherence, minutes),
    )
    return token


async def look(connection: AsyncConnection, brain: int, token: str, *, answer: str | None = None) -> Turn:
    """The turn of a token. With `answer` it is held until the transaction ends, to be used: a token that
    was used is only good for the same answer then.

    Raises:
        TurnGone: it is none of this brain's, has expired, or was used with another answer.
    """
    hashed = digest(token)
    statement = _TAKE if answer is None else f"{_TAKE} FOR UPDATE"
    cursor = await connection.execute(statement.encode(), (brain, hashed))
    row = await cursor.fetchone()
    if row is None:
        raise TurnGone("The turn token is not valid here.", remedy="Prepare the turn again.")
    text, masked, channel, door, sources, lessons, expired, used_at, answer_hash, packet = row
    if answer is not None and used_at is not None and answer_hash != digest(answer):
        raise TurnGone(
            "The turn token was used, with another answer.", remedy="Prepare a turn for each answer."
        )
    if expired and used_at is None:
        raise TurnGone("The turn token has expired.", remedy="Prepare the turn again.")
    return Turn(hashed, text, masked, channel, door, tuple(sources), tuple(lessons), used_at, packet)


async def use(connection: AsyncConnection, brain: int, turn: Turn, answer: str, packet: int) -> None:
    """Mark a token as used for an answer, of which a packet came."""
    await connection.execute(_USED, (digest(answer), packet, brain, turn.hash))
