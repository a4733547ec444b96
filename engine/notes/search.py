"""Search: keyword and vector lists, fused by score, held to a distance, shown as citations."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import ModelError, QueryError
from engine.notes import lists
from engine.notes.model import Citation, Explanation, Mode, SearchResult
from engine.notes.scope import Scope, resolve
from engine.text import ranking
from engine.text.tokens import Query, match_spans, parse_query

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from engine.database import Database
    from engine.models.embedding.base import Embedder, Vectors

MOST = 200
"""Citations one search gives at most."""

LONGEST_QUERY = 2_000
"""Characters of a query that are read; a pasted page is not a question."""

_PLACES = """
    SELECT passage.id, passage.heading, passage.text, place.path, place.folder, place.line_start,
        place.line_end, place.copies
    FROM passage JOIN LATERAL (
        SELECT file.path, folder.path AS folder, chunk.line_start, chunk.line_end,
            count(*) OVER () - 1 AS copies
        FROM chunk JOIN file ON file.id = chunk.file JOIN folder ON folder.id = file.folder
        WHERE chunk.passage = passage.id AND (%(files)s::integer[] IS NULL OR chunk.file = ANY(%(files)s))
        ORDER BY file.mtime_ns DESC, file.id, chunk.position LIMIT 1
    ) AS place ON true
    WHERE passage.id = ANY(%(passages)s)
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


class Searcher:
    """Answers searches. `model` is (id, dimension) of the embedding model once it is registered."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._embedder = embedder
        self.model: tuple[int, int] | None = None

    async def search(self, asked: Asked) -> SearchResult:
        """The passages that answer, best first; an empty result is an answer.

        Raises:
            QueryError: k or the distance is out of bounds, or a filter cannot be read.
            ModelError: the mode is vector and the model does not answer.
        """
        start = time.perf_counter()
        _check(asked)
        text = asked.query.replace("\0", " ").strip()[:LONGEST_QUERY]
        query = parse_query(text)
        if not text or (query.empty and asked.mode is Mode.KEYWORD):
            return SearchResult(asked.query, asked.mode, (), time.perf_counter() - start)
        vector, notes = await self._query_vector(asked.mode, text)
        async with self._database.transaction() as connection:
            citations = await self._answer(connection, asked, query, vector)
        return SearchResult(asked.query, asked.mode, citations, time.perf_counter() - start, tuple(notes))

    async def _query_vector(self, mode: Mode, text: str) -> tuple[Vectors | None, list[str]]:
        """The query's vector, or None with the sentence that says why there is none."""
        if mode is Mode.KEYWORD or self.model is None:
            return None, []
        try:
            return await self._embedder.query(text), []
        except ModelError as error:
            if mode is Mode.VECTOR:
                raise
            return None, [f"Searched by keyword alone: {error}"]

    async def _answer(
        self, connection: AsyncConnection, asked: Asked, query: Query, vector: Vectors | None
    ) -> tuple[Citation, ...]:
        scope = await resolve(
            connection, folder=asked.folder, path_glob=asked.path_glob, heading=asked.heading
        )
        only = scope.passages
        if query.phrases:
            only = await lists.holding(connection, query.phrases, only)
        keyword: list[tuple[int, float]] = []
        if asked.mode is not Mode.VECTOR:
            terms = await self._terms(connection, query, asked.prefix)
            keyword = await lists.by_keyword(connection, terms, only, POOL)
        nearest: list[tuple[int, float]] = []
        if vector is not None and self.model is not None:
            nearest = await lists.by_vector(connection, self.model, vector, only, POOL)
        fused = ...
        return await self._cite(connection, fused, query, scope)

    async def _terms(self, connection: AsyncConnection, query: Query, prefix: bool) -> list[str]:
        """The query's terms; an unfinished last word stands for the words that it may become."""
        if not prefix or query.prefix is None:
            return list(query.terms)
        grown = await lists.expand(connection, query.prefix)
        return list(dict.fromkeys((*query.terms, *grown)))


def _check(asked: Asked) -> None:
    if not 1 <= asked.k <= MOST:
        raise QueryError(f"k is {asked.k}.", remedy=f"Ask for 1 to {MOST} citations.")
    if asked.max_distance is not None and not 0 <= asked.max_distance <= 2:  # noqa: PLR2004  cosine distance
        raise QueryError(f"The distance is {asked.max_distance}.", remedy="A cosine distance is 0 to 2.")
