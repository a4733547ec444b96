"""One run of the configured model over what waits in a brain: cluster by cluster, each by itself."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from engine.errors import BudgetError, LanguageError, OutputError, PackageMissing
from engine.memory import deciding, packets
from engine.memory import synthesis_rows as rows
from engine.memory.brains import entered_by_id, everything
from engine.memory.distilling import TURNS, Distiller
from engine.memory.lesson_changes import Doing
from engine.memory.model import SynthesisStep
from engine.models.language.calling import NotReached

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.database import Database
    from engine.language import Language
    from engine.memory.lessons import Lessons
    from engine.memory.meaning import Meaning
    from engine.memory.model import BrainId

MOST_ATTEMPTS = 3
"""Failures after which a cluster is not given to the configured model again: what it cannot distil would cost
its tokens in every run. It waits, with the reason, for a person or a caller's model."""

MOST_MISSES = 2
"""Calls in a row that a model may not answer before the run is broken off: each may wait for minutes."""

_log = logging.getLogger("noctuary.memory")


class Running:
    """The distilling of one run."""

    def __init__(
        self,
        database: Database,
        meaning: Meaning,
        lessons: Lessons,
        language: Language,
        brain: BrainId,
        *,
        days: int,
        on_step: Callable[[SynthesisStep], object] | None = None,
    ) -> None:
        self._database = database
        self._meaning = meaning
        self._lessons = lessons
        self._distiller = Distiller(language)
        self._brain = brain
        self._doing = Doing(f"model {language.name}", days)
        self._on_step = on_step
        self._names = ("", "")

    async def due(self) -> list[int]:
        """Clusters that wait for the model."""
        async with entered_by_id(self._database, self._brain) as connection:
            return await rows.due(connection, self._brain, MOST_ATTEMPTS)

    async def tell(self, text: str, done: int = 0, total: int = 0) -> None:
        """Tell how far it is."""
        if self._on_step is None:
            return
        if not self._names[0]:
            async with everything(self._database) as connection:
                self._names = await rows.names(connection, self._brain)
        self._on_step(SynthesisStep(self._brain, *self._names, done, total, text))

    async def distil(self, run: int) -> str:
        """Have what waits distilled. Returns why it was broken off; nothing when it came to its end."""
        await self._lessons.see_all(self._brain)
        clusters, misses = await self.due(), 0
        for number, cluster in enumerate(clusters):
            await self.tell("Distilling", number, len(clusters))
            try:
                await self._distil(cluster, run)
                misses = 0
            except (BudgetError, NotReached, PackageMissing) as error:
                return str(error)
            except LanguageError as error:
                await self._failed(cluster, run, error)
                misses = 0 if isinstance(error, OutputError) else misses + 1
                if misses == MOST_MISSES:
                    return str(error)
        await self.tell("Distilled", len(clusters), len(clusters))
        return ""

    async def _distil(self, cluster: int, run: int) -> None:
        """One cluster. No transaction is open while the model writes."""
        async with entered_by_id(self._database, self._brain) as connection:
            ids = await rows.telling(connection, self._brain, cluster, TURNS)
            turns = await packets.turns(connection, self._brain, ids)
        text = await self._distiller.rule(turns)
        rule = None if text is None else (text, await self._meaning.passage(text))
        async with entered_by_id(self._database, self._brain) as connection:
            await deciding.decide(
                connection, self._brain, cluster, rule, self._doing, lessons=self._lessons, run=run
            )

    async def _failed(self, cluster: int, run: int, error: LanguageError) -> None:
        _log.warning("cluster %d was not distilled: %s", cluster, error)
        async with entered_by_id(self._database, self._brain) as connection:
            await rows.fail(connection, self._brain, cluster, str(error))
            await rows.tally(connection, self._brain, run, "failed")
