"""The routes: each translates a request to a call of the engine and the answer back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from starlette.exceptions import HTTPException

from engine.doors import narrowing
from engine.doors.http import shapes, told
from engine.doors.http.problems import errors
from engine.doors.http.turns import Turns, searches
from engine.notes.model import MOST_CITATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.notes.model import Citation

SEARCH_SECONDS = 20.0
ASK_SECONDS, ASKS = 900.0, 4
EVAL_SECONDS = 900.0
LOOK_SECONDS, LOOKS = 60.0, 2

STALE_SECONDS = 60.0
"""Age from which a survey is made anew, where this server does not watch the folders."""

Question = Annotated[shapes.Query, Query()]
Count = Annotated[int | None, Query(ge=1, le=MOST_CITATIONS, description="Citations at most.")]
Limit = Annotated[int, Query(ge=1, le=shapes.MOST_ROWS, description="Rows at most.")]
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]

QUIET = frozenset({"/health", "/dashboard", "/status", "/jobs/recent", "/traces/recent", "/eval/history"})
"""Paths that are asked for again and again by who only looks."""


class Routes:
    """The routes over one engine. With `watching`, this process keeps its surveys of the disk true."""

    def __init__(self, engine: Engine, *, watching: bool) -> None:
        self._engine = engine
        self._within = None if watching else STALE_SECONDS
        self._searches = Turns(searches(), SEARCH_SECONDS)
        self._asks = Turns(ASKS, ASK_SECONDS)
        self._evals = Turns(1, EVAL_SECONDS)
        self._looks = Turns(LOOKS, LOOK_SECONDS)

    def router(self) -> APIRouter:
        """All of them, as the OpenAPI document lists them."""
        router = APIRouter(redirect_slashes=False)
        add = router.add_api_route
        add("/health", self.health, operation_id="health", responses=errors())
        add("/search", self.search, operation_id="search", responses=errors(422, 503))
        add("/ask", self.ask, methods=["POST"], operation_id="ask", responses=errors(400, 415, 422, 503))
        add("/eval", self.eval, operation_id="eval", responses=errors(409, 503))
        add("/eval/history", self.history, operation_id="eval_history", responses=errors(422, 503))
        add(
            "/index",
            self.index,
            methods=["POST"],
            status_code=202,
            operation_id="index",
            responses=errors(400, 404, 415, 422, 503),
        )
        add("/index/{job_id}", self.index_state, operation_id="index_state", responses=errors(404, 422, 503))
        add("/status", self.status, operation_id="status", responses=errors(503))
        files: dict[int | str, dict[str, Any]] = {200: {"model": list[shapes.File]}}
        add("/files", self.files, operation_id="files", responses=files | errors(503), response_model=None)
        add("/jobs/recent", self.jobs, operation_id="jobs_recent", responses=errors(422, 503))
        add("/traces/recent", self.traces, operation_id="traces_recent", responses=errors(422, 503))
        return router

    async def health(self) -> shapes.Health:
        """Tell that the process lives. The database is not asked."""
        return shapes.Health(status="ok", embeddings_provider=self._engine.settings.embeddings_provider)

    async def search(self, response: Response, q: Question, k: Count = None) -> shapes.Found:
        """Find passages, best first. An empty list is the explicit "no evidence".

        `Server-Timing` tells the engine's own time in milliseconds.
        """
        async with self._searches.turn():
            result = await self._engine.notes.search(q, k=k)
            citations = await self._checked(result.citations)
        response.headers["server-timing"] = f"engine;dur={result.seconds * 1000:.2f}"
        return shapes.Found(citations=citations, notes=told.notes(result.notes))

    async def ask(self, question: shapes.Question) -> shapes.Answered:
        """Find passages, and let the language model write an answer of them, where one is set up."""
        async with self._asks.turn():
            given = await self._engine.asking.ask(question.q, k=question.k)
            citations = await self._checked(given.citations)
        return told.answer(given, citations)

    async def eval(self) -> shapes.Evaluated:
        """Ask the labelled questions now, store the run and compare it with the last."""
        async with self._evals.turn():
            return told.evaluated(await self._engine.evaluation.run())

    async def history(self, limit: Limit = 20) -> shapes.Runs:
        """List stored runs of eval, newest first."""
        async with self._looks.turn():
            return shapes.Runs(runs=[told.run(each) for each in await self._engine.evaluation.history(limit)])

    async def index(self, wanted: shapes.IndexPath | None = None) -> shapes.IndexJob:
        """Queue what differs from the disk; the answer comes when it is queued, not when it is done."""
        async with self._looks.turn():
            path = wanted.path if wanted else None
            return shapes.IndexJob(job_id=await self._engine.requests.make(path))

    async def index_state(self, job_id: Number) -> shapes.IndexState:
        """Tell how an indexing stands that was asked for here."""
        async with self._looks.turn():
            state = await self._engine.requests.state(job_id)
        if state is None:
            raise HTTPException(404, "There is no indexing of that number")
        error = f"{state.failed} of {state.jobs} failed." if state.failed else None
        return shapes.IndexState(id=state.id, status=state.status.value, error=error)

    async def status(self) -> shapes.Status:
        """Tell the state of index, disk, queue and vectors."""
        async with self._looks.turn():
            report = await self._engine.files.report(within=self._within)
            found = await self._engine.notes.status(exact=False)
            on_disk = await self._engine.files.on_disk(report, found.index.files if found.index else 0)
        model = self._engine.settings.embeddings_model or self._engine.settings.embeddings_provider
        return told.status(found, report, on_disk=on_disk, model=model)

    async def files(self) -> Response:
        """List the notes on the disk, in the index, or both."""
        async with self._looks.turn():
            report = await self._engine.files.report(within=self._within)
            rows = await self._engine.files.rows(report)
            return Response(await asyncio.to_thread(told.files, rows), media_type="application/json")

    async def jobs(self, limit: Limit = 20) -> list[shapes.Job]:
        """List jobs of the queue, newest first."""
        async with self._looks.turn():
            return [told.job(each) for each in await self._engine.notes.jobs(limit=limit)]

    async def traces(self, limit: Limit = 20) -> list[shapes.Trace]:
        """List searches and asks, through whichever door they came, newest first."""
        async with self._looks.turn():
            return [told.trace(each) for each in await self._engine.traces.recent(limit)]

    async def _checked(self, citations: Sequence[Citation]) -> list[shapes.Citation]:
        return [told.citation(*each) for each in await narrowing.checked(self._engine, citations)]
