"""Recall: the turns of a brain that answer a text, by words, meaning and the turns beside them.

A brain is read whole: what of its packets the ranking needs comes packed, as one value, so that some hundred
packets take a millisecond and some ten thousand a few tens. Texts are read of the few that are given.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from engine.memory import packets, ranking
from engine.memory.model import Source
from engine.memory.terms import asked_of, question_terms, turn_terms
from engine.text.amounts import count
from engine.text.vectors import vector_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from psycopg import AsyncConnection

    from engine.memory.meaning import Meant
    from engine.memory.ranking import Ranked
    from engine.settings import Settings

_PACKETS = """
    SELECT string_agg(int4send(id) || int4send(channel) || int4send(length) || int4send(hashtext(speaker))
        || int2send(asks::integer::smallint) || float4send(confidence),
        ''::bytea ORDER BY channel, at, id)
    FROM packet WHERE brain = %s AND NOT recalled
"""
_PACKET = np.dtype(
    [
        ("id", ">i4"),
        ("channel", ">i4"),
        ("length", ">i4"),
        ("speaker", ">i4"),
        ("asks", ">i2"),
        ("confidence", ">f4"),
    ]
)

_SPEAKERS = "SELECT DISTINCT speaker, hashtext(speaker) FROM packet WHERE brain = %s AND speaker <> ''"

_POSTINGS = """
    SELECT term, string_agg(int4send(packet) || int2send(tf), ''::bytea)
    FROM packet_posting WHERE brain = %s AND term = ANY(%s) GROUP BY term
"""
_POSTING = np.dtype([("packet", ">i4"), ("tf", ">i2")])

_DISTANCES = """
    SELECT string_agg(int4send(packet) || float4send((vector <=> %s::halfvec)::real), ''::bytea)
    FROM packet_embedding WHERE model = %s AND brain = %s AND state = 'embedded'
"""
_DISTANCE = np.dtype([("packet", ">i4"), ("distance", ">f4")])


class Recall:
    """Finds turns within a transaction that has entered a brain."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def sources(
        self, connection: AsyncConnection, brain: int, text: str, meant: Meant | None, k: int | None = None
    ) -> tuple[list[Source], tuple[str, ...]]:
        """The best turns, at most `k` (None: as many as the settings say), and sentences on what limits them.
        None is an answer: nothing relevant is known.
        """
        ranked, notes = await self.ranked(connection, brain, text, meant)
        best = ranked[: k or self._settings.recall_sources]
        rows = await packets.by_id(connection, brain, [each.id for each in best])
        found = [
            Source(
                packet=each.id,
                input=row.input,
                response=row.response,
                similarity=each.similarity,
                confidence=each.confidence,
                score=each.score,
                kind=row.kind,
                at=row.at,
                channel=row.channel,
                speaker=row.speaker,
                recalled=row.recalled,
                distance=each.distance,
            )
            for each in best
            if (row := rows.get(each.id)) is not None
        ]
        return found, notes

    async def ranked(
        self, connection: AsyncConnection, brain: int, text: str, meant: Meant | None
    ) -> tuple[list[Ranked], tuple[str, ...]]:
        """All relevant turns, best first."""
        words = question_terms(asked_of(text))
        held = await _packed(connection, _PACKETS, (brain,), _PACKET)
        if not len(held):
            return [], ()
        cursor = await connection.execute(_SPEAKERS, (brain,))
        speakers = [(row[0], row[1]) for row in await cursor.fetchall()]
        found = await _postings(connection, brain, words)
        near = np.empty(0, _DISTANCE)
        if meant is not None:
            wanted = vector_text(meant.vector.tolist())
            near = await _packed(connection, _DISTANCES, (wanted, meant.model.id, brain), _DISTANCE)
        missing = len(held) - len(near) if meant is not None else 0
        notes = (_waiting(missing),) if missing > 0 else ()
        question = _question(words, speakers, meant)
        return await asyncio.to_thread(_ranked, question, held, found, near), notes


def _ranked(
    question: ranking.Question,
    held: NDArray[np.void],
    found: dict[str, NDArray[np.void]],
    near: NDArray[np.void],
) -> list[Ranked]:
    ids = held["id"].astype(np.int32)
    order = np.argsort(ids)
    by_id = ids[order]
    terms = {}
    for term, block in found.items():
        places = _places(by_id, block["packet"])
        terms[term] = (order[places[places >= 0]], block["tf"][places >= 0].astype(np.int32))
    similarity = np.full(len(ids), np.nan, np.float32)
    places = _places(by_id, near["packet"])
    similarity[order[places[places >= 0]]] = 1 - near["distance"][places >= 0].astype(np.float32)
    pool = ranking.Pool(
        ids=ids,
        channels=held["channel"].astype(np.int32),
        speakers=held["speaker"].astype(np.int32),
        lengths=held["length"].astype(np.int32),
        asks=held["asks"] > 0,
        confidence=held["confidence"].astype(np.float32),
        similarity=similarity,
        terms=terms,
    )
    return ranking.rank(question, pool)


def _places(known: NDArray[np.int32], ids: NDArray[np.integer]) -> NDArray[np.intp]:
    """Where ids stand among sorted known ones; -1 where they do not."""
    places = np.searchsorted(known, ids)
    places[places == len(known)] = 0
    return np.where(known[places] == ids, places, -1)


def _question(
    words: tuple[str, ...], speakers: Sequence[tuple[str, int]], meant: Meant | None
) -> ranking.Question:
    asked = frozenset(words)
    named = [hashed for speaker, hashed in speakers if not asked.isdisjoint(turn_terms(speaker))]
    return ranking.Question(
        words,
        # Of two who are named neither is preferred.
        named=frozenset(named) if len(named) == 1 else frozenset(),
        reads=meant.reads if meant is not None else 0.0,
        limit=meant.model.embedder.default_distance if meant is not None else 0.0,
        unrelated=meant.model.embedder.unrelated_distance if meant is not None else 1.0,
    )


async def _postings(
    connection: AsyncConnection, brain: int, words: tuple[str, ...]
) -> dict[str, NDArray[np.void]]:
    cursor = connection.cursor(binary=True)
    await cursor.execute(_POSTINGS, (brain, list(words)))
    return {term: np.frombuffer(data, _POSTING) for term, data in await cursor.fetchall()}


async def _packed(
    connection: AsyncConnection, statement: str, parameters: Sequence[object], layout: np.dtype[np.void]
) -> NDArray[np.void]:
    """The one packed value of a statement as an array."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(statement.encode(), parameters)
    row = await cursor.fetchone()
    return np.frombuffer(row[0] if row and row[0] else b"", layout)


def _waiting(missing: int) -> str:
    """The sentence on turns that have no vector yet."""
    return f"{count(missing, 'turn')} {'waits for its vector' if missing == 1 else 'wait for their vectors'}."
