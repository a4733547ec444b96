"""The steps that all kinds of synthesis share: be alone in a brain, look at what is new, and write a run's
beginning and end.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from engine.cleanup import to_its_end
from engine.errors import ModelError, SynthesisBusy
from engine.memory import distilling, gathering
from engine.memory import synthesis_rows as rows
from engine.memory.brains import entered, entered_by_id
from engine.memory.gathering import Gathered
from engine.memory.lesson_changes import LONGEST_ACTOR, shown
from engine.memory.model import BrainId, BrainKey
from engine.memory.turntokens import digest
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from engine.database import Database
    from engine.language import Language
    from engine.memory.meaning import Meaning, Served

TOKEN_MINUTES = 60
"""In which a batch can be recorded."""


class Steps:
    """The steps over one database."""

    def __init__(self, database: Database, meaning: Meaning, language: Language) -> None:
        self._database = database
        self._meaning = meaning
        self._language = language

    async def brain(self, where: BrainKey | BrainId) -> BrainId:
        """Its id; 0 where the key's brain has no rows yet."""
        if not isinstance(where, BrainKey):
            return where
        async with entered(self._database, where) as (_, brain):
            return brain

    @asynccontextmanager
    async def alone(self, brain: BrainId) -> AsyncIterator[None]:
        """No other process learns in the brain meanwhile; one that dies lets go at once.

        Raises:
            SynthesisBusy: one is at it.
        """
        lock = await self._database.try_lock(f"synthesis {brain}")
        if lock is None:
            raise SynthesisBusy(
                "Another process is learning in this brain now.", remedy="Try again when it is done."
            )
        try:
            yield
        finally:
            await to_its_end(lock.release())

    async def gathered(
        self, brain: BrainId, tell: Callable[[str], Awaitable[None]] | None = None
    ) -> tuple[Gathered, list[str]]:
        """What is new, in groups, and the sentences on what is left for later."""
        model, why = await self._model()
        if model is None:
            async with entered_by_id(self._database, brain) as connection:
                unseen = await gathering.left(connection, brain)
            return Gathered(), ([f"{_turns(unseen)} for vectors: {why}"] if unseen else [])
        async with entered_by_id(self._database, brain) as connection:
            new, unseen = await gathering.unseen(connection, brain, model)
        if tell is not None and new:
            await tell(f"Comparing {count(len(new), 'turn')}")
        gathered = await gathering.grouped(new, model)
        return gathered, ([f"{_turns(unseen)} for a vector, and for the next run."] if unseen else [])

    async def _model(self) -> tuple[Served | None, str]:
        """The model whose vectors are compared, or why there is none."""
        for model in self._meaning.models():
            try:
                await model.embedder.ready()
            except ModelError as error:
                return None, str(error)
            return model, ""
        return None, "no model makes any yet."

    async def begin(
        self, brain: BrainId, gathered: Gathered, distiller: str, actor: str, token: str | None = None
    ) -> int:
        """The run, its clusters and its packets in one transaction."""
        async with entered_by_id(self._database, brain) as connection:
            await rows.bury(connection, brain)
            run = await rows.begin(
                connection,
                brain,
                distiller=distiller,
                actor=shown(actor, LONGEST_ACTOR),
                scanned=len(gathered.packets),
                clusters=len(gathered.groups),
                model=self._language.name if distiller == "model" else "",
                version=distilling.VERSION,
                token_hash=digest(token) if token else None,
                minutes=TOKEN_MINUTES,
            )
            await gathering.write(connection, brain, run, gathered)
            if distiller == "caller" and token is None:
                await rows.finish(connection, brain, run)
        return run

    async def finish(self, brain: BrainId, run: int, error: str) -> None:
        """The run is over; `error` tells why it was broken off."""
        async with entered_by_id(self._database, brain) as connection:
            await rows.finish(connection, brain, run, error)


def _turns(number: int) -> str:
    return f"{count(number, 'turn')} {'waits' if number == 1 else 'wait'}"
