"""The routes of memory: those that Khwan's client asks for, in its shapes, and the sources of a lesson."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query
from starlette.exceptions import HTTPException

from engine.doors.http import memory_shapes as shapes
from engine.doors.http import memory_told as told
from engine.doors.http import whose
from engine.doors.http.problems import errors
from engine.doors.http.turns import Turns
from engine.memory.model import LessonState

if TYPE_CHECKING:
    from engine import Engine

ACTOR = DOOR = "http"

TURN_SECONDS, TURNS = 30.0, 8
"""Turns spend most of their time in the database, which has so many connections for them."""

LEARN_SECONDS, LEARNERS = 900.0, 4
"""Learning waits for language models; two at once in one brain the engine refuses."""

GONE = "Noctuary takes no provider key and calls no model for you: use /prepare, your own model, and /record"
NO_LESSON = "There is no such lesson here"

PARTS = frozenset(
    {
        "chat",
        "cores",
        "lessons",
        "memory",
        "metrics",
        "prepare",
        "record",
        "sync",
        "synthesize",
        "verify",
    }
)
"""First parts of the paths: the keys of other accounts open these."""

LARGE = frozenset({"/prepare", "/record", "/verify", "/synthesize/record"})
"""Paths to which a whole turn is sent."""

Limit = Annotated[int, Query(ge=1, le=shapes.MOST_LESSONS, description="Rows at most.")]
Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


class MemoryRoutes:
    """The routes of memory over one engine."""

    def __init__(self, engine: Engine) -> None:
        self._memory = engine.memory
        self._turns = Turns(TURNS, TURN_SECONDS)
        self._learning = Turns(LEARNERS, LEARN_SECONDS)

    def router(self) -> APIRouter:
        """All of them, as the OpenAPI document lists them."""
        router = APIRouter(redirect_slashes=False)
        of_brain = {"parameters": whose.PARAMETERS}
        add, post = partial(router.add_api_route, openapi_extra=of_brain), ["POST"]
        read, write = errors(404, 422, 503), errors(400, 404, 415, 422, 503)
        bare = errors(404, 415, 422, 503)
        by_token = errors(400, 404, 410, 415, 422, 503)
        add("/prepare", self.prepare, methods=post, operation_id="prepare", responses=write)
        add("/record", self.record, methods=post, operation_id="record", responses=by_token)
        add("/verify", self.verify, methods=post, operation_id="verify", responses=by_token)
        add("/lessons", self.lessons, operation_id="lessons", responses=read)
        one = "/lessons/{lesson_id}"
        add(one, self.delete, methods=["DELETE"], operation_id="lesson_delete", responses=read)
        add(one, self.edit, methods=["PATCH"], operation_id="lesson_edit", responses=write)
        add(f"{one}/sources", self.sources, operation_id="lesson_sources", responses=read)
        add(
            "/synthesize/prepare",
            self.hand_out,
            methods=post,
            operation_id="synthesize_prepare",
            responses=bare,
        )
        add(
            "/synthesize/record",
            self.take_in,
            methods=post,
            operation_id="synthesize_record",
            responses=by_token,
        )
        add("/sync", self.sync, methods=post, operation_id="sync", responses=bare)
        add("/memory", self.recent, operation_id="memory", responses=read)
        add("/metrics", self.metrics, operation_id="metrics", responses=read)
        router.add_api_route("/cores", self.cores, operation_id="cores", responses=errors(503))
        router.add_api_route("/chat", self.chat, methods=post, include_in_schema=False)
        return router

    async def prepare(self, key: whose.Whose, turn: shapes.Prepare) -> shapes.Prepared:
        """Make the context of a turn: constitution, lessons, what is known. No model is called."""
        async with self._turns.turn():
            found = await self._memory.prepare(
                key, turn.input, constitution=turn.constitution, channel=turn.channel, door=DOOR
            )
        return told.prepared(found)

    async def record(self, key: whose.Whose, turn: shapes.Record) -> shapes.Recorded:
        """Keep a prepared turn with its answer, and use its token up. The same again changes nothing."""
        async with self._turns.turn():
            kept = await self._memory.record(key, turn.turn_token, turn.answer, occurred_at=turn.occurred_at)
        return shapes.Recorded.model_validate(kept)

    async def verify(self, key: whose.Whose, draft: shapes.Verify) -> shapes.Verified:
        """Hold an answer against what is known, before it is given. Nothing is kept, no token used."""
        async with self._turns.turn():
            found = await self._memory.verify(key, draft.answer, draft.turn_token)
        return shapes.Verified.model_validate(found)

    async def lessons(self, key: whose.Whose, limit: Limit = 50) -> shapes.Lessons:
        """List the living lessons, the most reinforced first."""
        async with self._turns.turn():
            found = await self._memory.lessons.of(key, limit)
        return shapes.Lessons(lessons=[told.lesson(each) for each in found])

    async def delete(self, key: whose.Whose, lesson_id: Number) -> shapes.LessonDeleted:
        """Throw a lesson out. Its like is not learned again."""
        async with self._turns.turn():
            gone = await self._memory.lessons.delete([lesson_id], actor=ACTOR, key=key)
        if not gone:
            raise HTTPException(404, NO_LESSON)
        return shapes.LessonDeleted(id=str(lesson_id))

    async def edit(self, key: whose.Whose, lesson_id: Number, wording: shapes.LessonText) -> shapes.Lesson:
        """Word a lesson differently. Its sources and its history stay, and it is found by the new words."""
        async with self._turns.turn():
            return told.lesson(await self._memory.lessons.edit(lesson_id, wording.text, actor=ACTOR, key=key))

    async def sources(self, key: whose.Whose, lesson_id: Number) -> shapes.LessonSources:
        """List the turns that a lesson came from, as they were said."""
        async with self._turns.turn():
            detail = await self._memory.lessons.detail(lesson_id, key)
        if detail.lesson.state is LessonState.DELETED:
            raise HTTPException(404, NO_LESSON)
        return told.sources(detail)

    async def hand_out(self, key: whose.Whose) -> shapes.Batch:
        """Hand out what is to be distilled, for the caller's own model. Each call gives a new token."""
        async with self._learning.turn():
            return told.batch(await self._memory.synthesis.prepare(key, actor=ACTOR))

    async def take_in(self, key: whose.Whose, rules: shapes.Rules) -> shapes.Distilled:
        """Take in what the caller's model distilled. What failed of it sinks nothing of the rest."""
        given = [(rule.cluster_id, rule.text) for rule in rules.lessons]
        async with self._learning.turn():
            outcomes, run = await self._memory.synthesis.record(
                key, rules.synthesis_token, given, actor=ACTOR
            )
        return told.distilled(outcomes, run)

    async def sync(self, key: whose.Whose) -> shapes.Learned:
        """Learn now: group what is new, and distil it by the model that is set. Without one it waits."""
        async with self._learning.turn():
            return told.learned(await self._memory.synthesis.run(key, actor=ACTOR))

    async def recent(self, key: whose.Whose, limit: Limit = 20) -> shapes.Packets:
        """List the turns that were kept, newest first."""
        async with self._turns.turn():
            rows = await self._memory.recent(key, limit)
        return shapes.Packets(packets=[shapes.Packet.model_validate(row) for row in rows])

    async def metrics(self, key: whose.Whose) -> shapes.Metrics:
        """Count what is in the brain."""
        async with self._turns.turn():
            return shapes.Metrics.model_validate(await self._memory.metrics(key))

    async def cores(self, account: whose.Account) -> list[shapes.Core]:
        """List the cores of the account, the default one first."""
        async with self._turns.turn():
            found = await self._memory.cores(account)
        return [shapes.Core.model_validate(each) for each in found]

    async def chat(self) -> None:
        """Tell that the route which took a provider's key is gone."""
        raise HTTPException(410, GONE)
