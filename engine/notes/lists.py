"""The ranked lists a search draws on: keyword by exact BM25, vector by cosine distance.

Both rank passages (distinct texts), not places: a passage that stands in many files takes one rank.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.database.bulk import array
from engine.notes.scope import unpacked
from engine.text.ranking import POSTING, Bm25
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray
    from psycopg import AsyncConnection

    from engine.models.embedding.base import Vectors
    from engine.text.tokens import Phrase, Query

EXACT_WITHIN = 10_000
"""Passages of a filter up to which every distance is computed: always complete, and 16 ms at most
(`hazards.md`); an index walk with a narrow filter is neither."""

EF_SEARCH = 100
"""Candidates the vector index keeps while it walks: recall 0.99 and more at 100,000 passages."""

PREFIX_TERMS = 24
"""Words that an unfinished last word may stand for, the most frequent first."""

PHRASE_TEXTS = 5_000
"""Texts read at most for the phrases of one search: a tenth of a second. Only phrases of words that are
common everywhere have more passages to look through; then those that fit the query best are."""

PHRASE_BATCH = 500
"""Texts read at a time to see whether a phrase stands in them."""

_STATISTICS = """
    SELECT coalesce(sum(passages), 0), coalesce(sum(length), 0),
        (SELECT string_agg(int4send(id), ''::bytea) FROM passage
            WHERE orphaned_at IS NOT NULL AND length > 0),
        (SELECT coalesce(sum(length), 0) FROM passage WHERE orphaned_at IS NOT NULL)
    FROM segment
"""

_AROUND = """
    SELECT passage.id, passage.length, beside.passage
    FROM passage
    JOIN LATERAL (
        SELECT file, position FROM chunk WHERE chunk.passage = passage.id ORDER BY file, position LIMIT 1
    ) AS place ON true
    LEFT JOIN chunk AS beside
        ON beside.file = place.file AND beside.position IN (place.position - 1, place.position + 1)
    WHERE passage.id = ANY(%s) ORDER BY passage.id, beside.position
"""

_POSTINGS = "SELECT term, data FROM posting WHERE term = ANY(%s)"

_TEXTS = "SELECT id, text FROM passage WHERE id = ANY(%s)"

_PREFIX = """
    SELECT term FROM posting WHERE term >= %s AND term < %s
    GROUP BY term ORDER BY sum(octet_length(data)) DESC, term LIMIT %s
"""

# The index is walked in order of distance until enough rows pass the filters. A wide filter comes as bits
# and not as ids: the planner would weigh every id of a list, which costs more than the walk.
_NEAREST = """
    SELECT embedding.passage,
        embedding.vector::halfvec({dimension}) <=> %(query)s::halfvec({dimension}) AS distance
    FROM embedding
    WHERE embedding.model = {model} AND embedding.state = 'embedded'
        AND (%(only)s::bytea IS NULL OR CASE WHEN embedding.passage < octet_length(%(only)s::bytea) * 8
            THEN get_bit(%(only)s::bytea, embedding.passage) = 1 ELSE false END)
        AND EXISTS (SELECT FROM passage WHERE passage.id = embedding.passage AND passage.orphaned_at IS NULL)
    ORDER BY embedding.vector::halfvec({dimension}) <=> %(query)s::halfvec({dimension}) LIMIT %(limit)s
"""

_EXACT = """
    SELECT passage, vector <=> %(query)s::halfvec AS distance FROM embedding
    WHERE model = %(model)s AND state = 'embedded' AND passage = ANY(%(only)s::integer[])
    ORDER BY distance, passage LIMIT %(limit)s
"""


async def expand(connection: AsyncConnection, word: str) -> list[str]:
    """The indexed terms an unfinished word may become, the most frequent first."""
    if not word:
        return []
    cursor = await connection.execute(_PREFIX, (word, word + "\U0010ffff", PREFIX_TERMS))
    return [row[0] for row in await cursor.fetchall()]


@dataclass(frozen=True, slots=True)
class Collection:
    """What BM25 has to know of all passages, and which of them no file holds any more."""

    documents: int
    total_length: int
    orphans: NDArray[np.int32]


async def collection(connection: AsyncConnection) -> Collection:
    """The statistics of the keyword index now."""
    cursor = await connection.execute(_STATISTICS)
    row = await cursor.fetchone() or (0, 0, None, 0)
    orphans = unpacked(row[2])
    return Collection(int(row[0]) - len(orphans), int(row[1]) - int(row[3]), orphans)


async def postings(connection: AsyncConnection, terms: Sequence[str]) -> dict[str, list[bytes]]:
    """The packed postings of each term that any passage has."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(_POSTINGS, (list(terms),))
    found: dict[str, list[bytes]] = {}
    for term, data in await cursor.fetchall():
        found.setdefault(term, []).append(data)
    return found


async def texts(connection: AsyncConnection, passages: Sequence[int]) -> list[tuple[int, str]]:
    """The text of each passage."""
    cursor = await connection.execute(_TEXTS, (list(passages),))
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def words(connection: AsyncConnection, terms: Sequence[str]) -> Bm25:
    """Exact BM25 over all postings of the terms."""
    whole = await collection(connection)
    found = await postings(connection, terms)
    return await asyncio.to_thread(Bm25.of, found, whole.documents, whole.total_length, exclude=whole.orphans)


async def around(
    connection: AsyncConnection, passages: Sequence[int]
) -> tuple[dict[int, int], dict[int, list[int]]]:
    """The length of each passage in terms, and the passages before and after it where it first stands."""
    cursor = await connection.execute(_AROUND, (list(passages),))
    lengths: dict[int, int] = {}
    neighbours: dict[int, list[int]] = {}
    for passage, length, beside in await cursor.fetchall():
        lengths[passage] = length
        if beside is not None:
            neighbours.setdefault(passage, []).append(beside)
    return lengths, neighbours


async def holding(
    connection: AsyncConnection, query: Query, only: NDArray[np.int32] | None
) -> tuple[NDArray[np.int32], bool]:
    """The passages in which every phrase stands, and whether all that might were read.

    Narrowed down by terms, decided on the text, of `PHRASE_TEXTS` passages at most.
    """
    import numpy as np

    candidates = await asyncio.to_thread(
        _candidates, await postings(connection, _phrase_terms(query)), query, only
    )
    complete = len(candidates) <= PHRASE_TEXTS
    if not complete:
        bm25 = await words(connection, query.terms)
        candidates = (await asyncio.to_thread(bm25.best, PHRASE_TEXTS, only=candidates))[0]
    kept: list[int] = []
    for start in range(0, len(candidates), PHRASE_BATCH):
        batch = candidates[start : start + PHRASE_BATCH].tolist()
        kept += await asyncio.to_thread(_with_phrases, await texts(connection, batch), query.phrases)
    return np.array(sorted(kept), dtype=np.int32), complete


def _phrase_terms(query: Query) -> list[str]:
    return list(dict.fromkeys(term for phrase in query.phrases for term in phrase.terms))


def _candidates(
    found: Mapping[str, Sequence[bytes]], query: Query, only: NDArray[np.int32] | None
) -> NDArray[np.int32]:
    """The passages that have every term of every phrase, the rarest term first."""
    import numpy as np

    candidates = only
    for term in sorted(_phrase_terms(query), key=lambda each: sum(map(len, found.get(each, [])))):
        having = np.unique(np.frombuffer(b"".join(found.get(term, [])), dtype=POSTING)["passage"])
        candidates = having if candidates is None else np.intersect1d(candidates, having)
    return np.empty(0, dtype=np.int32) if candidates is None else candidates


def _with_phrases(rows: Sequence[tuple[int, str]], phrases: Sequence[Phrase]) -> list[int]:
    return [identity for identity, text in rows if all(phrase.found_in(text) for phrase in phrases)]


async def by_vector(
    connection: AsyncConnection,
    model: tuple[int, int],
    query: Vectors,
    only: NDArray[np.int32] | None,
    limit: int,
) -> list[tuple[int, float]]:
    """The nearest passages: (passage, cosine distance), nearest first.

    `model` is (id, dimension). Within a narrow filter every distance is computed, otherwise the index
    is walked; it must be called in a transaction, for which the walk's settings are made.
    """
    identity, dimension = model
    wanted = vector_text(query.tolist())
    if only is not None and len(only) <= EXACT_WITHIN:
        return await distances(connection, identity, query, only.tolist(), limit)
    within = None if only is None else await asyncio.to_thread(bits, only)
    await connection.execute(
        "SELECT set_config('hnsw.iterative_scan', 'strict_order', true),"
        " set_config('hnsw.ef_search', %s, true),"
        " set_config('enable_sort', 'off', true), set_config('plan_cache_mode', 'force_custom_plan', true)",
        (str(max(EF_SEARCH, limit)),),
    )
    cursor = await connection.execute(
        nearest_statement(identity, dimension).encode(),
        {"query": wanted, "only": within, "limit": limit},
    )
    found = [(row[0], float(row[1])) for row in await cursor.fetchall()]
    if only is not None and len(found) < limit:
        # The walk gives up (hnsw.max_scan_tuples) when what the filter lets through lies far off.
        return await distances(connection, identity, query, only.tolist(), limit)
    # The walk goes by the index's own rounded vectors, so its order is off by the last digits.
    return sorted(found, key=lambda hit: (hit[1], hit[0]))


def bits(ids: NDArray[np.int32]) -> bytes:
    """A set of ids as `get_bit` reads it: bit n, from the lowest of the first byte, is set for id n."""
    import numpy as np

    marks = np.zeros(int(ids.max(initial=0)) + 1, dtype=np.uint8)
    marks[ids] = 1
    return np.packbits(marks, bitorder="little").tobytes()


def nearest_statement(model: int, dimension: int) -> str:
    """The statement that walks a model's index. Both numbers stand in it literally, since a partial
    index on an expression is only used for a constant; they come from our own table.
    """
    return _NEAREST.format(model=int(model), dimension=int(dimension))


async def distances(
    connection: AsyncConnection, model: int, query: Vectors, only: Sequence[int], limit: int
) -> list[tuple[int, float]]:
    """Exact distances within a set of passages, nearest first; one without a vector is left out."""
    if not only:
        return []
    cursor = await connection.execute(
        _EXACT, {"query": vector_text(query.tolist()), "model": model, "only": array(only), "limit": limit}
    )
    return [(row[0], float(row[1])) for row in await cursor.fetchall()]
