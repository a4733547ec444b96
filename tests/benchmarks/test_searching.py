"""Keyword search over the whole corpus: how fast, and whether it is the same as exhaustive BM25."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from figures import Figure, percentile, show

from engine.notes.model import Mode
from engine.text.ranking import K1, B
from engine.text.tokens import parse_query, terms

if TYPE_CHECKING:
    from engine import Engine

pytestmark = pytest.mark.benchmark

QUERIES = 200


class Exhaustive:
    """BM25 in plain Python over every passage: the yardstick, which shares nothing but the terms."""

    def __init__(self, texts: dict[int, tuple[str, str]]) -> None:
        self._counts = {
            each: Counter(terms(text) + terms(heading)) for each, (text, heading) in texts.items()
        }
        self._lengths = {identity: counts.total() for identity, counts in self._counts.items()}
        self._average = sum(self._lengths.values()) / len(texts)
        self._having: Counter[str] = Counter(term for counts in self._counts.values() for term in counts)

    def top(self, query: str, limit: int) -> dict[int, float]:
        """The best passages with their scores."""
        scores: Counter[int] = Counter()
        wanted = parse_query(query).terms
        for identity, counts in self._counts.items():
            for term in wanted:
                tf = counts.get(term, 0)
                if tf:
                    n, have = len(self._counts), self._having[term]
                    idf = math.log(1 + (n - have + 0.5) / (have + 0.5))
                    norm = K1 * (1 - B + B * self._lengths[identity] / self._average)
                    scores[identity] += idf * tf * (K1 + 1) / (tf + norm)
        return dict(scores.most_common(limit))


def queries(texts: dict[int, str]) -> list[str]:
    """Runs and mixtures of 1 to 6 words as they stand in the notes, frequent and rare."""
    chosen = random.Random(7)
    identities = sorted(texts)
    found: list[str] = []
    while len(found) < QUERIES:
        words = texts[chosen.choice(identities)].split()
        length = 1 + len(found) % 6
        if len(words) < length:
            continue
        if len(found) % 2:
            start = chosen.randrange(len(words) - length + 1)
            query = " ".join(words[start : start + length])
        else:
            query = " ".join(chosen.sample(words, length))
        query = query.replace('"', "")
        if parse_query(query).terms:
            found.append(query)
    return found


async def test_keyword_search(engine: Engine) -> None:
    async with engine.database.connection() as connection:
        cursor = await connection.execute("SELECT id, text, heading FROM passage WHERE orphaned_at IS NULL")
        passages = {row[0]: (row[1], row[2]) for row in await cursor.fetchall()}
        cursor = await connection.execute(
            "SELECT path, line_start, line_end, passage FROM chunk JOIN file ON id = file"
        )
        places = {(row[0], row[1], row[2]): row[3] for row in await cursor.fetchall()}
    texts = {identity: text for identity, (text, _) in passages.items()}
    asked = queries(texts)
    exhaustive = Exhaustive(passages)
    await engine.notes.search("warm up", k=10, mode=Mode.KEYWORD)
    waits, same, wanted, naive = [], 0, 0, 0.0
    for query in asked:
        start = time.perf_counter()
        result = await engine.notes.search(query, k=10, mode=Mode.KEYWORD)
        waits.append(time.perf_counter() - start)
        start = time.perf_counter()
        best = exhaustive.top(query, 60)
        naive += time.perf_counter() - start
        found = {scored(texts, places, citation) for citation in result.citations}
        top = list(best.items())[:10]
        # Passages that tie with the tenth are as right as it is.
        tied = {identity for identity, score in best.items() if score >= top[-1][1] - 1e-4} if top else set()
        same += len(found & tied)
        wanted += len(top)
    p95 = percentile(waits, 0.95)
    show(
        Figure(
            f"keyword search, {QUERIES} mixed queries of 1–6 words over {len(texts)} passages",
            f"p50 {percentile(waits, 0.5) * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms",
            f"exhaustive BM25 in Python {naive / QUERIES * 1000:.0f} ms a query",
            "p95 ≤ 60 ms",
            p95 <= 0.06,
        ),
        Figure(
            "its top 10 against exhaustive BM25",
            f"{same / wanted:.1%} the same",
            f"{wanted} places",
            "≥ 95 %",
            same >= 0.95 * wanted,
        ),
    )


def scored(texts: dict[int, str], places: dict[tuple[str, int, int], int], citation: object) -> int:
    """The passage of a citation; pieces of one over-long line share its place and are told by text."""
    from engine.notes.model import Citation

    assert isinstance(citation, Citation)
    identity = places[citation.path, citation.line_start, citation.line_end]
    if texts[identity] == citation.text:
        return identity
    return next(each for each, text in texts.items() if text == citation.text)
