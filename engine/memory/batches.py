"""Synthesis by the caller's own model: what waits is handed out as prompts, and what it wrote is taken back.

The token of a batch is good once, for an hour, in its brain. All of what is taken back is written, or none.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from engine.errors import LessonError, TurnGone
from engine.memory import deciding, distilling, packets
from engine.memory import lesson_changes as changes
from engine.memory import synthesis_rows as rows
from engine.memory.brains import entered
from engine.memory.distilling import Unusable
from engine.memory.lesson_changes import Doing
from engine.memory.model import BrainId, BrainKey, ClusterPrompt, ClusterState, Distilled, SynthesisBatch
from engine.memory.turntokens import BYTES, digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.memory.lessons import Lessons
    from engine.memory.meaning import Meaning, Meant
    from engine.memory.model import SynthesisRun
    from engine.memory.synthesis_steps import Steps

BATCH = 50
"""Clusters handed to a caller's model at once, the oldest; the others wait for the next batch."""

BATCH_TOKENS = 2_000
"""Tokens of turns of each of them: a whole batch is read in one conversation."""

MOST_RECORDED = 1_000
"""Lessons in one answer of a caller."""


class Batches:
    """Batches of clusters, handed out and taken back."""

    def __init__(
        self, database: Database, meaning: Meaning, lessons: Lessons, steps: Steps, *, days: int
    ) -> None:
        self._database = database
        self._meaning = meaning
        self._lessons = lessons
        self._steps = steps
        self._days = days

    async def prepare(self, key: BrainKey, *, actor: str) -> SynthesisBatch:
        """See `Synthesis.prepare`."""
        brain = await self._steps.brain(key)
        if not brain:
            return SynthesisBatch(None, distilling.system(), (), 0)
        async with self._steps.alone(brain):
            gathered, _ = await self._steps.gathered(brain)
            async with entered(self._database, key) as (connection, _):
                some_wait = bool(gathered.groups) or await rows.waiting(connection, brain) > 0
            token = secrets.token_urlsafe(BYTES) if some_wait else None
            if token or gathered.packets:
                await self._steps.begin(brain, gathered, "caller", actor, token=token)
        return SynthesisBatch(token, distilling.system(), await self._prompts(key), len(gathered.packets))

    async def record(
        self, key: BrainKey, token: str, lessons: Sequence[tuple[int, str | None]], *, actor: str
    ) -> tuple[list[Distilled], SynthesisRun]:
        """See `Synthesis.record`."""
        if len(lessons) > MOST_RECORDED:
            raise LessonError(f"At most {MOST_RECORDED:,} lessons are recorded at once.")
        async with entered(self._database, key) as (connection, brain):
            await self._valid(connection, brain, token)
        given = [(cluster, *await self._read(text)) for cluster, text in lessons]
        await self._lessons.see_all(brain)
        doing = Doing(f"caller {actor}", self._days)
        outcomes: list[Distilled] = []
        async with entered(self._database, key) as (connection, brain):
            # Before the run: a person who distils meanwhile holds the lessons when he counts to its yield.
            await changes.lock(connection, brain)
            run = await self._valid(connection, brain, token)
            for cluster, rule, trouble in given:
                outcome = Distilled(cluster, ClusterState.WAITING, None, trouble or deciding.GONE)
                if deciding.is_id(cluster) and trouble:
                    await rows.fail(connection, brain, cluster, trouble, counts=False)
                    await rows.tally(connection, brain, run, "failed")
                elif deciding.is_id(cluster):
                    outcome = await deciding.decide(
                        connection, brain, cluster, rule, doing, lessons=self._lessons, run=run
                    )
                outcomes.append(outcome)
            await rows.finish(connection, brain, run)
            (done,) = await rows.runs(connection, brain=brain, run=run, limit=1)
        return outcomes, done

    async def _valid(self, connection: AsyncConnection, brain: BrainId, token: str) -> int:
        """The run of a token, held.

        Raises:
            TurnGone: it is not valid here.
        """
        run = await rows.by_token(connection, brain, digest(token))
        if run is None:
            raise TurnGone(
                "The synthesis token is not valid here: it was used, has expired, or is of another brain.",
                remedy="Prepare the synthesis again.",
            )
        return run

    async def _read(self, text: str | None) -> tuple[tuple[str, Meant | None] | None, str]:
        """A caller's rule and what it means, or None for nothing; with the reason where it is neither."""
        if text is None or not text.strip():
            return None, ""
        try:
            rule = distilling.read(text)
        except Unusable as error:
            return None, f"This is no rule: {error}"
        return (None if rule is None else (rule, await self._meaning.passage(rule))), ""

    async def _prompts(self, key: BrainKey) -> tuple[ClusterPrompt, ...]:
        """What waits in the brain, the oldest first, as a caller's model is shown it."""
        prompts = []
        async with entered(self._database, key) as (connection, brain):
            for each in await rows.clusters(connection, brain=brain, limit=BATCH):
                ids = await rows.telling(connection, brain, each.id, distilling.TURNS)
                turns = await packets.turns(connection, brain, ids)
                prompts.append(ClusterPrompt(each.id, distilling.prompt(turns, BATCH_TOKENS)))
        return tuple(prompts)
