"""The hot queries keep to their indexes: on tables with many rows none is read from end to end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from engine.notes import backlog, drift, index, joblist, jobs, lists, passages, search
from engine.notes.scope import EVERYTHING
from engine.text.vectors import vector_text
from tests.integration.bulk import DIMENSION, VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from psycopg import AsyncConnection

VECTOR = vector_text(np.full(DIMENSION, 0.05, np.float32).tolist())

# Statement, values, the index that must be used; for each the plan with values known and without.
QUERIES: dict[str, tuple[str, Any, str]] = {
    "claim": (jobs._CLAIM, {"limit": 256, "worker": "w", "lease": 60, "foreign": []}, "job_queue"),
    "whether a job waits": (jobs._WAITING, {"within": 2.0, "foreign": [7]}, "job_queue"),
    "lapsed leases": (jobs._ANY_LAPSED, {}, "job_status|job_processing"),
    "postings": (lists._POSTINGS, (["term7", "term8", "term9"],), "posting_pkey"),
    "prefix": (lists._PREFIX, ("term12", "term12\U0010ffff", 24), "posting_pkey"),
    "statistics": (lists._STATISTICS, {}, "passage_orphaned"),
    "phrases": (lists._TEXTS, (list(range(500)),), "passage_pkey"),
    "exact distances": (
        lists._EXACT,
        {"query": VECTOR, "model": 1, "only": list(range(1, 500)), "limit": 100},
        "embedding_pkey",
    ),
    "places": (search._PLACES, {"passages": list(range(1, 11)), **EVERYTHING.places}, "chunk_passage"),
    "places within files": (
        search._PLACES,
        {"passages": [1, 2], **EVERYTHING.places, "files": "{1,2,3}"},
        "chunk_passage",
    ),
    "backlog": (backlog._NEXT, (1, 32), "embedding_backlog"),
    "store a vector": (backlog._STORE, ([4001, 4002], [VECTOR, VECTOR], 1), "embedding_pkey"),
    "drift below a folder": (drift._ROWS_BELOW, (1, "d7/", "d70"), "file_folder_path_key"),
    "open jobs below a folder": (
        drift._OPEN_JOBS,
        {"folder": 1, "from": "d7/", "to": "d70"},
        "job_pending|job_processing|job_failed",
    ),
    "known hashes": (
        index._KNOWN_HASHES,
        ([1, 1], ["d1/n1.md", "d2/n2.md"], 1),
        "file_folder_path_key",
    ),
    "known passages": (
        passages._KNOWN,
        {"last": 1, "hashes": b"\0" * 64, "format": 1},
        "passage_hash_key",
    ),
    "orphans": (index._ORPHAN, ([1, 2, 3],), "passage_pkey"),
    "done": (jobs._DONE, {"ids": [30_020, 30_040], "worker": "w"}, "job_pkey|job_status"),
    "page of failed jobs": (
        joblist._LIST,
        {"status": "failed", "text": "", "limit": 200, "offset": 0},
        "job_status|job_pkey",
    ),
    "page of all jobs": (joblist._LIST, {"status": None, "text": "", "limit": 200, "offset": 0}, "job_pkey"),
}
GENERIC = {
    "claim",
    "whether a job waits",
    "lapsed leases",
    "known passages",
    "postings",
    "statistics",
    "places",
    "backlog",
    "orphans",
}
"""Prepared after five runs, these may be planned without their values."""


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def judge(plan: Mapping[str, Any], expected: str) -> None:
    found = list(nodes(plan))
    read_whole = {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"}
    assert read_whole <= {"folder", "segment", "model"}, f"read from end to end: {read_whole}"
    used = {node["Index Name"] for node in found if "Index Name" in node}
    assert used & set(expected.split("|")), f"{expected} is not used, but {used}"


async def explained(
    connection: AsyncConnection[Any], statement: str, values: object = None
) -> Mapping[str, Any]:
    cursor = await connection.execute(statement.encode(), values)
    rows = await cursor.fetchall()
    return rows[0][0][0]["Plan"]


@pytest.mark.parametrize("name", QUERIES)
async def test_a_hot_query_uses_its_index(bulk_connection: AsyncConnection[Any], name: str) -> None:
    statement, values, expected = QUERIES[name]
    judge(await explained(bulk_connection, f"EXPLAIN (FORMAT JSON) {statement}", values or None), expected)


@pytest.mark.parametrize("name", sorted(GENERIC))
async def test_a_prepared_query_uses_its_index_too(bulk_connection: AsyncConnection[Any], name: str) -> None:
    statement, values, expected = QUERIES[name]
    names = list(values) if isinstance(values, dict) else []
    numbers = iter(range(1, 100))
    statement = re.sub(r"%\((\w+)\)s", lambda match: f"${names.index(match[1]) + 1}", statement)
    statement = re.sub(r"%s", lambda _: f"${next(numbers)}", statement).replace("%%", "%")
    judge(await explained(bulk_connection, f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {statement}"), expected)


@pytest.mark.parametrize("only", [None, list(range(1, VECTORS, 3))])
async def test_the_nearest_passages_are_walked_to_in_the_vector_index(
    bulk_connection: AsyncConnection[Any], only: list[int] | None
) -> None:
    query = np.full(DIMENSION, 0.05, np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lists, "EXACT_WITHIN", 0)
        allowed = None if only is None else np.array(only, np.int32)
        found = await lists.by_vector(bulk_connection, (1, DIMENSION), query, allowed, 100)
    assert len(found) == 100
    within = None if allowed is None else lists.bits(allowed)
    statement = f"EXPLAIN (FORMAT JSON) {lists.nearest_statement(1, DIMENSION)}"
    plan = await explained(bulk_connection, statement, {"query": VECTOR, "only": within, "limit": 100})
    judge(plan, "embedding_vector_1")
