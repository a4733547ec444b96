"""Messages become exchanges: what a user said, with all that was answered before the next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.memory.importers.model import Exchange, ImportedTurn, Skip

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

USER = "user"


def paired(turns: Iterable[ImportedTurn | Skip]) -> Iterator[Exchange | Skip]:
    """The exchanges in the order in which they ended, channels apart. At the end come those that
    nothing follows, which are not `complete`: more of their answer may be written yet.
    """
    open_ones: dict[str, Exchange] = {}
    for turn in turns:
        if isinstance(turn, Skip):
            yield turn
        elif turn.author == USER:
            if before := open_ones.pop(turn.channel, None):
                yield replace(before, complete=True)
            open_ones[turn.channel] = _begun(turn)
        elif turn.channel not in open_ones:
            yield Skip(turn.origin, "an answer to nothing")
        else:
            open_ones[turn.channel] = _answered(open_ones[turn.channel], turn)
    yield from open_ones.values()


def _begun(turn: ImportedTurn) -> Exchange:
    return Exchange(
        turn.key, turn.channel, turn.text, None, turn.at, turn.origin, turn.speaker, complete=False
    )


def _answered(exchange: Exchange, turn: ImportedTurn) -> Exchange:
    response = turn.text if exchange.response is None else f"{exchange.response}\n\n{turn.text}"
    return replace(exchange, response=response)
