"""Search: keyword and vector lists, fused by score, held to a distance, shown as citations."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from engine.errors import ModelError, QueryError
from engine.models.embedding.courtesy import QUESTIONS
from engine.notes import lists
from engine.notes.model import BY_WORDS, MOST_CITATIONS, Citation, Explanation, Mode, SearchResult
from engine.notes.scope import Scope, Scopes
from engine.notes.tally import Tally
from engine.text import ranking
from engine.text.scripts import differ
from engine.text.tokens import MAX_QUERY, Query, match_spans, parse_query

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.models.embedding.base import Vectors
    from engine.notes.embedders import Served

HARDLY = 0.5
"""How far the model reads a query (0..1) below which a search says so."""

FEW_WORDS = 3
"""Words that show which language a query is in."""

COMMON_PHRASE = (
    f"The phrase is of common words: only the {lists.PHRASE_TEXTS:,} passages that fit the query best were "
    "searched for it."
)

UNKNOWN_PHRASE = "No passage holds what is quoted just so: its words were searched without the quotes."

_PLACES = """
    SELECT passage.id, passage.heading, passage.text, place.path, place.folder, place.line_start,
        place.line_end, place.copies
    FROM passage JOIN LATERAL (
        SELECT file.path, folder.path AS folder, chunk.line_start, chunk.line_end,
            count(*) OVER () - 1 AS copies
        FROM chunk JOIN file ON file.id = chunk.file JOIN folder ON folder.id = file.folder
        WHERE chunk.passage = passage.id
            AND (%(root)s::integer IS NULL OR file.folder = %(root)s)
            AND (%(below)s = '' OR starts_with(file.path, %(below)s))
            AND (%(files)s::integer[] IS NULL OR file.id = ANY(%(files)s::integer[]))
        ORDER BY file.mtime_ns DESC, file.id, chunk.position LIMIT 1
    ) AS place ON true
    WHERE passage.id = ANY(%(passages)s)
"""


_WITHOUT_VECTOR = """
    SELECT count(*) FROM embedding WHERE model = %s AND state = 'pending'
        AND NOT EXISTS (SELECT FROM passage WHERE passage.id = embedding.passage
            AND passage.orphaned_at IS NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it was asked."""

    query: str
    k: int
    mode: Mode = Mode.HYBRID
    path_glob: str | None = None
    folder: Path | None = None
    heading: str | None = None
    max_distance: float | None = None
    prefix: bool = False


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means to a model, which reads it so far (0..1)."""

    vector: Vectors
    model: Served
    reads: float


class Answering(Protocol):
    """Which models answer by meaning: `Embedders`, or whoever wants one asked that is not in use."""

    @property
    def serving(self) -> Served | None:
        """The one that answers now."""

    def answering(self) -> Sequence[Served]:
        """Those to ask for a question's vector, until one gives it."""

    def absence(self) -> ModelError:
        """Why there is none to ask."""


class Searcher:
    """Answers searches, by meaning with the models of `embedders`.

    With `strict` a search by words and meaning fails, too, when no model answers: it is a measurement then.
    """

    def __init__(self, database: Database, embedders: Answering, *, strict: bool = False) -> None:
        self._database = database
        self._embedders = embedders
        self._strict = strict
        self._scopes = Scopes()
        self._waiting = Tally(self._count_waiting)

    async def _count_waiting(self, connection: AsyncConnection) -> int:
        serving = self._embedders.serving
        cursor = await connection.execute(_WITHOUT_VECTOR, (serving.id if serving else None,))
        row = await cursor.fetchone()
        return row[0] if row else 0

    async def warm(self) -> None:
        """Load the model before the first question: half a second that nobody then waits for.

        A model that cannot be loaded says so when it is asked.
        """
        with suppress(ModelError):
            await self._query_vector(Mode.VECTOR, "warm")

    async def search(self, asked: Asked) -> SearchResult:
        """The passages that answer, best first; an empty result is an answer.

        Raises:
            QueryError: k or the distance is out of bounds, or a filter cannot be read.
            ModelError: the mode is vector (or the searcher strict) and the model does not answer.
        """
        start = time.perf_counter()
        _check(asked)
        text = asked.query.replace("\0", " ").strip()[:MAX_QUERY]
        query = parse_query(text)
        if query.empty:  # bare signs ask for nothing, though some passage is always nearest to them
            return SearchResult(asked.query, asked.mode, (), time.perf_counter() - start)
        with QUESTIONS.asked():
            meaning, notes = await self._query_vector(asked.mode, text)
            async with self._database.transaction() as connection:
                scope = await self._scopes.resolve(
                    connection, folder=asked.folder, path_glob=asked.path_glob, heading=asked.heading
                )
                citations = await self._answer(connection, asked, query, meaning, notes, scope=scope)
                if meaning is not None and scope.path_matches:
                    waiting = await self._waiting.get(connection, exact=False)
                    notes += limits(asked.mode, text, waiting, meaning.reads)
        seconds = time.perf_counter() - start
        return SearchResult(asked.query, asked.mode, citations, seconds, tuple(notes), scope.path_matches)

    async def _query_vector(self, mode: Mode, text: str) -> tuple[Meaning | None, list[str]]:
        """What the query means, or None with the sentence that says why that is not known."""
        if mode is Mode.KEYWORD:
            return None, []
        fault: ModelError | None = None
        for served in self._embedders.answering():
            try:
                vector = await served.query(text)
            except ModelError as error:
                fault = fault or error
            else:
                return Meaning(vector, served, served.embedder.reads(text)), []
        fault = fault or self._embedders.absence()
        if mode is Mode.VECTOR or self._strict:
            raise fault
        return None, [f"{BY_WORDS}: {fault}"]

    async def _answer(
        self,
        connection: AsyncConnection,
        asked: Asked,
        query: Query,
        meaning: Meaning | None,
        notes: list[str],
        *,
        scope: Scope,
    ) -> tuple[Citation, ...]:
        only = scope.passages
        if query.phrases:
            only = await self._with_phrases(connection, query, only, notes)
        words = await self._words(query, asked.prefix, connection) if asked.mode is not Mode.VECTOR else []
        terms = [term for alternatives in words for term in alternatives]
        bm25 = await lists.words(connection, terms)
        pool = max(ranking.POOL, asked.k)
        ids, scores = await asyncio.to_thread(bm25.best, pool, only=only)
        keyword = list(zip(ids.tolist(), scores.tolist(), strict=True))
        if meaning is None or (keyword and not meaning.reads):
            hits = ranking.fuse(keyword, [], 0.0)
        else:
            model = meaning.model
            nearest = await lists.by_vector(
                connection, (model.id, model.dimension), meaning.vector, only, pool
            )
            hits = await self._fused(connection, bm25, keyword, nearest, meaning)
            limit = asked.max_distance if asked.max_distance is not None else model.embedder.default_distance
            coverage = bm25.coverage([hit.id for hit in hits], words)
            near = await self._near_across(connection, asked, hits, model)
            hits = ranking.evidence(hits, limit, coverage, meaning.reads, near)
        return await self._cite(connection, asked, hits[: asked.k], query, scope)

    async def _near_across(
        self, connection: AsyncConnection, asked: Asked, hits: Sequence[ranking.Fused], model: Served
    ) -> frozenset[int]:
        """Hits in another script than the query that are near enough for that."""
        limit, across = model.embedder.default_distance, model.embedder.distance_across
        between = [hit.id for hit in hits if hit.distance is not None and limit < hit.distance <= across]
        if asked.max_distance is not None or not between:
            return frozenset()
        texts = await lists.texts(connection, between)
        return frozenset(each for each, text in texts if differ(asked.query, text))

    async def _fused(
        self,
        connection: AsyncConnection,
        bm25: ranking.Bm25,
        keyword: Sequence[tuple[int, float]],
        nearest: Sequence[tuple[int, float]],
        meaning: Meaning,
    ) -> list[ranking.Fused]:
        """Both lists in one, each passage judged together with its neighbours."""
        if not keyword:
            return ranking.fuse([], nearest, 1.0)
        candidates = dict.fromkeys(each for each, _ in (*keyword, *nearest))
        lengths, neighbours = await lists.around(connection, list(candidates))
        wanted = {*candidates, *(each for beside in neighbours.values() for each in beside)}
        known = await lists.distances(
            connection, meaning.model.id, meaning.vector, sorted(wanted), len(wanted)
        )
        return ranking.fuse(
            keyword,
            nearest,
            meaning.model.embedder.meaning_share * meaning.reads,
            words=bm25.in_context(lengths, neighbours),
            distances=dict(known),
            neighbours=neighbours,
            unrelated=meaning.model.embedder.unrelated_distance,
        )

    async def _cite(
        self,
        connection: AsyncConnection,
        asked: Asked,
        hits: Sequence[ranking.Fused],
        query: Query,
        scope: Scope,
    ) -> tuple[Citation, ...]:
        """Each hit at the place where it stands: in the newest file, when it stands in several."""
        cursor = await connection.execute(
            _PLACES,
            {"passages": [hit.id for hit in hits], **scope.places},
        )
        places = {row[0]: row[1:] for row in await cursor.fetchall()}
        return tuple(
            _citation(hit, places[hit.id], query, prefix=asked.prefix) for hit in hits if hit.id in places
        )

    async def _with_phrases(
        self, connection: AsyncConnection, query: Query, only: NDArray[np.int32] | None, notes: list[str]
    ) -> NDArray[np.int32] | None:
        """The passages that are searched: those with every phrase; all of them, when a question quotes what
        stands nowhere just so. Who asks for a phrase alone wants to know whether it stands anywhere.
        """
        holding, complete = await lists.holding(connection, query, only)
        if not complete:
            notes.append(COMMON_PHRASE)
        if len(holding) or not query.beside:
            return holding
        notes.append(UNKNOWN_PHRASE)
        return only

    async def _words(self, query: Query, prefix: bool, connection: AsyncConnection) -> list[list[str]]:
        """The query's words, each with the terms that may stand for it: an unfinished one has several."""
        if not prefix or query.prefix is None:
            return [[term] for term in query.terms]
        grown = await lists.expand(connection, query.prefix)
        whole = [[term] for term in query.terms if term != query.prefix]
        return [*whole, list(dict.fromkeys((query.prefix, *grown)))]


def limits(mode: Mode, text: str, waiting: int, reads: float) -> list[str]:
    """Sentences on what limits an answer by meaning: `waiting` passages without a vector, and how far the
    model `reads` (0..1) the query.
    """
    notes = []
    by_meaning = mode is Mode.VECTOR
    if waiting:
        passages = (
            "1 passage waits for its vector" if waiting == 1 else f"{waiting:,} passages wait for vectors"
        )
        until = "not found by meaning until then" if by_meaning else "found by words alone until then"
        notes.append(f"Vectors are still being made: {passages}, {until}.")
    if reads < HARDLY and _shows_its_language(text):
        if by_meaning:
            notes.append("The model hardly reads this query's language: its distances mean little.")
        elif not reads:
            notes.append("The model does not read this query's language: searched by words alone.")
        else:
            notes.append("The model hardly reads this query's language: words count for more.")
    return notes


def _shows_its_language(text: str) -> bool:
    """One or two words in Latin letters, such as a name, are of no language in particular."""
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and (len(text.split()) >= FEW_WORDS or not "".join(letters).isascii())


def _check(asked: Asked) -> None:
    if not 1 <= asked.k <= MOST_CITATIONS:
        raise QueryError(f"k is {asked.k}.", remedy=f"Ask for 1 to {MOST_CITATIONS} citations.")
    if asked.max_distance is not None and not 0 <= asked.max_distance <= 2:
        raise QueryError(f"The distance is {asked.max_distance}.", remedy="A cosine distance is 0 to 2.")


def _citation(hit: ranking.Fused, place: Sequence[Any], query: Query, *, prefix: bool) -> Citation:
    heading, text, path, folder, line_start, line_end, copies = place
    return Citation(
        folder=Path(folder),
        path=path,
        line_start=line_start,
        line_end=line_end,
        text=text,
        distance=hit.distance,
        score=hit.score,
        heading=tuple(heading.split("\n")) if heading else (),
        matches=match_spans(text, query, prefix=prefix),
        copies=copies,
        explanation=Explanation(
            hit.keyword_rank,
            hit.keyword_score,
            hit.vector_rank,
            hit.distance if hit.vector_rank is not None else None,
            hit.score,
        ),
    )
