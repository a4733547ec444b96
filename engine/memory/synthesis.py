"""Synthesis: what was said since the last run becomes clusters, and clusters become lessons.

A rule comes from the configured model, from the caller's own model (`prepare`, `record`) or from the person
who types it. One process at a time learns in a brain; while a model writes, no transaction is open.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.cleanup import to_its_end
from engine.errors import LessonError, SynthesisBusy
from engine.memory import deciding, packets
from engine.memory import synthesis_rows as rows
from engine.memory.batches import Batches
from engine.memory.brains import entered, entered_by_id, everything
from engine.memory.lesson_changes import Doing, cleaned
from engine.memory.lessons import SOURCES
from engine.memory.model import BrainId, BrainKey, SynthesisRun
from engine.memory.running import Running
from engine.memory.synthesis_steps import Steps
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.language import Language
    from engine.memory.lessons import Lessons
    from engine.memory.meaning import Meaning
    from engine.memory.model import Cluster, Distilled, SourceTurn, SynthesisBatch, SynthesisStep
    from engine.settings import Settings

NONE_NEW = "Nothing was said since the last run."


class Synthesis:
    """Learns from the turns of all brains."""

    def __init__(
        self,
        database: Database,
        meaning: Meaning,
        lessons: Lessons,
        language: Language,
        settings: Settings,
    ) -> None:
        self._database = database
        self._meaning = meaning
        self._lessons = lessons
        self._language = language
        self._days = settings.lesson_days
        self._steps = Steps(database, meaning, language)
        self._batches = Batches(database, meaning, lessons, self._steps, days=settings.lesson_days)

    # By the configured model

    async def run(
        self,
        where: BrainKey | BrainId,
        *,
        actor: str,
        on_step: Callable[[SynthesisStep], object] | None = None,
        distil: bool = True,
    ) -> SynthesisRun:
        """Cluster what is new in a brain, then have what waits distilled. Without a model, or with `distil`
        off, the clusters wait, and the run's notes say so. A run with nothing to do has the id 0 and is not
        kept.

        A cluster whose distilling fails waits with the reason, and the others go on; after three failures
        only a person or a caller's model distils it.

        Raises:
            SynthesisBusy: another process is learning in this brain.
            CoreUnknown: the account has no such core.
        """
        brain = await self._steps.brain(where)
        if not brain:
            return self._nothing(brain, where, actor, [NONE_NEW])
        running = Running(
            self._database,
            self._meaning,
            self._lessons,
            self._language,
            brain,
            days=self._days,
            on_step=on_step,
        )
        async with self._steps.alone(brain):
            gathered, notes = await self._steps.gathered(brain, running.tell)
            due = await running.due() if distil and self._language.configured else []
            if not gathered.packets and not due:
                notes += await self._waiting_notes(brain, distil=distil)
                return await self._named(self._nothing(brain, where, actor, notes or [NONE_NEW]))
            run = await self._steps.begin(brain, gathered, "model", actor)
            trouble = "It was cut off."
            try:
                trouble = await running.distil(run) if distil and self._language.configured else ""
            finally:
                await to_its_end(self._steps.finish(brain, run, trouble))
        notes += await self._waiting_notes(brain, distil=distil)
        return await self._outcome(brain, run, notes)

    async def run_all(
        self, *, actor: str, on_step: Callable[[SynthesisStep], object] | None = None
    ) -> list[SynthesisRun]:
        """The same for every brain with something unseen or waiting, but for those where another process is
        learning. Once a model could not be had, the other brains' clusters wait.

        Raises:
            SynthesisBusy: another process is learning in each of them.
        """
        async with everything(self._database) as connection:
            brains = await rows.needing(connection)
        done: list[SynthesisRun] = []
        busy: SynthesisBusy | None = None
        for brain in brains:
            distil = not any(run.state == "failed" for run in done)
            try:
                done.append(await self.run(brain, actor=actor, on_step=on_step, distil=distil))
            except SynthesisBusy as error:
                busy = error
        if busy and not done:
            raise busy
        return done

    # By the caller's model

    async def prepare(self, key: BrainKey, *, actor: str) -> SynthesisBatch:
        """Cluster what is new, and hand out what waits, with the prompts to distil it by. The token is for
        `record`, once, within the hour; None when nothing waits.

        Raises:
            SynthesisBusy: another process is learning in this brain.
            CoreUnknown: the account has no such core.
        """
        return await self._batches.prepare(key, actor=actor)

    async def record(
        self, key: BrainKey, token: str, lessons: Sequence[tuple[int, str | None]], *, actor: str
    ) -> tuple[list[Distilled], SynthesisRun]:
        """Take the rules for a batch: each a cluster's id with its rule, or with None or NONE where it
        teaches nothing. All are written, or none. What is no rule, or of no waiting cluster of this batch, is
        skipped with a note; its cluster waits on.

        Raises:
            TurnGone: the token is none of this brain's, has expired, or was used.
            LessonError: there are too many.
            CoreUnknown: the account has no such core.
        """
        return await self._batches.record(key, token, lessons, actor=actor)

    # By hand

    async def waiting(self, limit: int = 200) -> list[Cluster]:
        """Clusters of all brains that wait for a distiller, the oldest first."""
        async with everything(self._database) as connection:
            return await rows.clusters(connection, limit=limit)

    async def cluster_sources(self, cluster: int) -> list[SourceTurn]:
        """The turns of a cluster, oldest first: of many those that say most, as a model is shown them.

        Raises:
            LessonError: there is no such cluster.
        """
        async with everything(self._database) as connection:
            found = await self._cluster(connection, cluster)
            ids = await rows.telling(connection, found.brain, cluster, SOURCES)
            return await packets.turns(connection, found.brain, ids)

    async def distil(self, cluster: int, text: str | None, *, actor: str) -> Distilled:
        """Give the rule of a waiting cluster by hand; with None it is kept that it teaches nothing.

        Raises:
            LessonError: there is no such cluster, it was decided already, or the text is none.
        """
        async with everything(self._database) as connection:
            found = await self._cluster(connection, cluster)
        line = None if text is None else cleaned(text)
        rule = None if line is None else (line, await self._meaning.passage(line))
        await self._lessons.see_all(found.brain)
        async with entered_by_id(self._database, found.brain) as connection:
            outcome = await deciding.decide(
                connection, found.brain, cluster, rule, Doing(actor, self._days), lessons=self._lessons
            )
        if outcome.note == deciding.DECIDED:
            raise LessonError(f"The cluster {cluster} was decided already: {outcome.state}.")
        return outcome

    async def runs(self, limit: int = 20, key: BrainKey | None = None) -> list[SynthesisRun]:
        """Runs of a brain, or of all, newest first.

        Raises:
            CoreUnknown: the account has no such core.
        """
        if key is None:
            async with everything(self._database) as connection:
                return await rows.runs(connection, limit=limit)
        async with entered(self._database, key) as (connection, brain):
            return await rows.runs(connection, brain=brain, limit=limit)

    async def _waiting_notes(self, brain: BrainId, *, distil: bool) -> list[str]:
        """The sentence on clusters that wait, and for what."""
        async with entered_by_id(self._database, brain) as connection:
            waiting = await rows.waiting(connection, brain)
        if not waiting:
            return []
        wait = f"{count(waiting, 'cluster')} {'waits' if waiting == 1 else 'wait'}"
        if why := self._language.why_not:
            return [f"{wait} for a distiller: {why}"]
        if not distil:
            return [f"{wait}: the model could not be had."]
        return [f"{wait} to be tried again, or to be distilled by hand."]

    async def _outcome(self, brain: BrainId, run: int, notes: list[str]) -> SynthesisRun:
        async with everything(self._database) as connection:
            (done,) = await rows.runs(connection, brain=brain, run=run, limit=1)
        return replace(done, notes=(*done.notes, *notes))

    def _nothing(
        self, brain: BrainId, where: BrainKey | BrainId, actor: str, notes: Sequence[str]
    ) -> SynthesisRun:
        """A run that is not kept, because there was nothing to do."""
        key = where if isinstance(where, BrainKey) else BrainKey()
        now = datetime.now(UTC)
        zeros = (0,) * 7
        return SynthesisRun(
            0,
            brain,
            key.core or "",
            key.user,
            "model",
            actor,
            "completed",
            now,
            now,
            *zeros,
            notes=tuple(notes),
        )

    async def _named(self, run: SynthesisRun) -> SynthesisRun:
        """With the names of its brain, and how much waits there."""
        async with everything(self._database) as connection:
            core, user = await rows.names(connection, run.brain)
            waiting = await rows.waiting(connection, run.brain)
        return replace(run, core=core, user=user, waiting=waiting)

    async def _cluster(self, connection: AsyncConnection, cluster: int) -> Cluster:
        found = (
            await rows.clusters(connection, cluster=cluster, waiting=False) if deciding.is_id(cluster) else []
        )
        if not found:
            raise LessonError(f"There is no cluster {cluster} here.")
        return found[0]
