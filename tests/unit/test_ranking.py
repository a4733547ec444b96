"""BM25 is exact, whatever the shape of the postings; fusion is by score, stable and fair to what is missing."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.text.ranking import (
    EVIDENCE,
    K1,
    NEIGHBOUR_NEARNESS,
    NEIGHBOUR_WORDS,
    POSTING,
    B,
    Bm25,
    evidence,
    fuse,
    postings,
)

WORDS = "abcde"
Collection = dict[int, list[str]]

passages = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12)
near_ids, far_ids = st.integers(1, 60), st.integers(1, 2**31 - 1)
collections = st.one_of(
    st.dictionaries(near_ids, passages, max_size=25), st.dictionaries(far_ids, passages, max_size=25)
)
queries = st.sets(st.sampled_from(WORDS + "z"), min_size=1)


def posting(passage: int, length: int, frequency: int) -> bytes:
    """One posting as it is stored."""
    return postings(passage, np.array([length]), np.array([frequency])).tobytes()


def indexed(collection: Collection, segments: int = 1) -> dict[str, list[bytes]]:
    """The postings as the index keeps them: per term a block for each segment."""
    blocks: dict[str, list[bytes]] = {}
    for segment in range(segments):
        part = {key: text for key, text in collection.items() if key % segments == segment}
        for term in sorted({word for text in part.values() for word in text}):
            having = {key: text for key, text in part.items() if term in text}
            block = b"".join(posting(key, len(text), text.count(term)) for key, text in having.items())
            blocks.setdefault(term, []).append(block)
    return blocks


def reference(collection: Collection, query: set[str]) -> dict[int, float]:
    """BM25 as it stands in the book."""
    average = max(1.0, sum(map(len, collection.values())) / max(1, len(collection)))
    scores: Counter[int] = Counter()
    for term in query:
        having = sum(term in text for text in collection.values())
        idf = math.log(1 + (len(collection) - having + 0.5) / (having + 0.5))
        for key, text in collection.items():
            if tf := text.count(term):
                scores[key] += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(text) / average))
    return dict(scores)


def searched(collection: Collection, query: set[str], **options: Any) -> dict[int, float]:
    chosen = {term: blocks for term, blocks in indexed(collection, 3).items() if term in query}
    excluded = options.get("exclude")
    kept = {k: t for k, t in collection.items() if excluded is None or k not in excluded}
    bm25 = Bm25.of(chosen, len(kept), sum(map(len, kept.values())), exclude=excluded)
    ids, scores = bm25.best(options.get("limit", 1000), only=options.get("only"))
    return dict(zip(ids.tolist(), scores.tolist(), strict=True))


@given(collections, queries)
def test_scores_are_those_of_the_formula(collection: Collection, query: set[str]) -> None:
    assert searched(collection, query) == pytest.approx(reference(collection, query), rel=1e-5)


@given(collections, queries, st.sets(near_ids))
def test_what_is_excluded_counts_nowhere(collection: Collection, query: set[str], gone: set[int]) -> None:
    kept = {key: text for key, text in collection.items() if key not in gone}
    found = searched(collection, query, exclude=np.array(sorted(gone), np.int32))
    assert found == pytest.approx(reference(kept, query), rel=1e-5)


@given(collections, queries, st.sets(near_ids))
def test_a_filter_chooses_and_changes_no_score(
    collection: Collection, query: set[str], only: set[int]
) -> None:
    wanted = {key: value for key, value in reference(collection, query).items() if key in only}
    assert searched(collection, query, only=np.array(sorted(only), np.int32)) == pytest.approx(
        wanted, rel=1e-5
    )


@given(collections, queries, st.integers(0, 30))
def test_the_limit_keeps_the_best_in_a_fixed_order(
    collection: Collection, query: set[str], limit: int
) -> None:
    whole = list(searched(collection, query).items())
    assert list(searched(collection, query, limit=limit).items()) == whole[:limit]
    assert whole == sorted(whole, key=lambda pair: (-pair[1], pair[0]))


@given(collections, queries)
def test_context_without_neighbours_favours_nobody(collection: Collection, query: set[str]) -> None:
    """Every side counts as the passage itself: each frequency is that much higher, and nothing else."""
    chosen = {term: blocks for term, blocks in indexed(collection).items() if term in query}
    bm25 = Bm25.of(chosen, len(collection), sum(map(len, collection.values())))
    lengths = {key: len(text) for key, text in collection.items()}
    average = max(1.0, sum(lengths.values()) / max(1, len(collection)))
    for key, found in bm25.in_context(lengths, {}).items():
        wanted = 0.0
        for term in query:
            having = sum(term in text for text in collection.values())
            tf = collection[key].count(term) * (1 + 2 * NEIGHBOUR_WORDS)
            idf = math.log(1 + (len(collection) - having + 0.5) / (having + 0.5))
            wanted += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths[key] / average))
        assert found == pytest.approx(wanted, rel=1e-5)


def test_words_next_door_lift_a_passage_but_less_than_its_own() -> None:
    collection: Collection = {1: ["a", "x"], 2: ["y", "x"], 3: ["a", "b"], 9: ["x", "x"], 10: ["x", "x"]}
    bm25 = Bm25.of({t: b for t, b in indexed(collection).items() if t == "a"}, 5, 10)
    scores = bm25.in_context(dict.fromkeys((1, 2, 3, 9), 2), {1: (2,), 2: (1, 3), 3: (2,), 9: (10,)})
    assert scores[3] == scores[1] > scores[2] > scores[9] == 0


def test_coverage_weighs_words_by_how_rare_they_are() -> None:
    collection: Collection = {1: ["rare", "often"], 2: ["often"], 3: ["often"], 4: ["other"]}
    postings = {term: blocks for term, blocks in indexed(collection).items() if term in {"rare", "often"}}
    bm25 = Bm25.of(postings, 4, 5)
    both = bm25.coverage([1, 2, 4, 77], [["rare"], ["often"]])
    assert both[1] == pytest.approx(1)
    assert 0 < both[2] < 0.5
    assert both[4] == both[77] == 0
    assert bm25.coverage([1], [["rare"], ["nowhere"]])[1] < 0.5
    assert bm25.coverage([1, 4], [["ra", "rare"]]) == {1: 1, 4: 0}
    assert bm25.coverage([1], []) == {1: 0}


def test_numbers_beyond_a_field_are_cut_to_it() -> None:
    block = np.frombuffer(posting(2**31 - 1, 70_000, 1000), POSTING)
    assert (POSTING.itemsize, block["passage"][0], block["length"][0], block["tf"][0]) == (
        7,
        2**31 - 1,
        65_535,
        255,
    )


def test_nothing_is_found_in_nothing() -> None:
    ids, scores = Bm25.of({}, 0, 0).best(10)
    assert ids.tolist() == scores.tolist() == []
    assert Bm25.of({}, 0, 0).in_context({5: 3}, {}) == {5: 0}
    assert fuse([], [], 0.4) == []


def test_fusion_keeps_ranks_scores_and_distances() -> None:
    hits = {hit.id: hit for hit in fuse([(1, 8.0), (2, 4.0)], [(2, 0.2), (3, 0.6)], 0.5)}
    assert [(hits[n].keyword_rank, hits[n].vector_rank) for n in (1, 2, 3)] == [(1, None), (2, 1), (None, 2)]
    assert (hits[2].keyword_score, hits[2].distance) == (4.0, 0.2)
    assert hits[2].score == pytest.approx(0.5 * 0.5 + 0.5 * 1)
    assert hits[3].score == pytest.approx(0.5 * 0.5)


def test_what_has_no_vector_yet_is_judged_by_its_words() -> None:
    fused = fuse([(1, 8.0), (2, 7.9)], [(2, 0.5)], 0.5)
    assert [(hit.id, hit.distance) for hit in fused] == [(1, None), (2, 0.5)]
    assert fused[0].score == 1


def test_a_list_without_weight_adds_nothing() -> None:
    assert [hit.id for hit in fuse([(1, 8.0), (2, 4.0)], [(3, 0.1), (2, 0.2)], 0.0)] == [1, 2]
    assert [hit.id for hit in fuse([], [(3, 0.1), (2, 0.2), (4, 1.3)], 1.0)] == [3, 2]


def test_a_near_neighbour_lifts_and_a_missing_one_does_not_lower() -> None:
    keyword, vector = [(1, 1.0), (2, 1.0), (3, 1.0)], [(1, 0.5), (2, 0.5), (3, 0.5)]
    around = {1: (7, 8), 2: (9, 10)}
    fused = fuse(keyword, vector, 0.5, distances={7: 0.4, 8: 0.4, 9: 0.9, 10: 0.9}, neighbours=around)
    assert [hit.id for hit in fused] == [1, 3, 2]
    assert fused[1].score == pytest.approx(1)
    spread = NEIGHBOUR_NEARNESS / (1 + 2 * NEIGHBOUR_NEARNESS)
    assert fused[0].score == pytest.approx(0.5 + 0.5 * (1 + 2 * spread * (0.6 / 0.5 - 1)))


def test_equal_scores_are_in_order_of_id() -> None:
    assert [hit.id for hit in fuse([(5, 2.0), (3, 2.0), (9, 2.0)], [], 0.4)] == [3, 5, 9]


@given(st.lists(st.tuples(near_ids, st.floats(0.1, 50)), unique_by=lambda pair: pair[0], min_size=2))
def test_the_tail_of_a_list_changes_nothing_at_its_head(keyword: list[tuple[int, float]]) -> None:
    keyword.sort(key=lambda pair: -pair[1])
    head = fuse(keyword[:-1], [], 0.4)
    assert [hit for hit in fuse(keyword, [], 0.4) if hit.id != keyword[-1][0]] == head


def test_evidence_is_near_or_holds_what_was_asked() -> None:
    hits = fuse([(1, 9.0), (2, 8.0), (5, 7.0)], [(3, 0.5), (2, 0.9), (1, 0.9), (4, 0.9)], 0.4)
    covered = {1: EVIDENCE, 2: EVIDENCE - 0.01, 3: 0.0, 4: 1.0, 5: 0.0}
    assert {hit.id for hit in evidence(hits, 0.8, covered)} == {1, 3, 5}
    assert {hit.id for hit in evidence(hits, 0.8, covered, reads=0.0)} == {1, 2, 3, 5}
    assert {hit.id for hit in evidence(hits, 0.9, {})} == {1, 2, 3, 4, 5}


def test_nearness_is_counted_down_to_the_distance_of_what_is_unrelated() -> None:
    """A model that puts all texts near to each other would else hardly tell them apart."""
    keyword, vector = [(1, 8.0), (2, 4.0)], [(2, 0.12), (1, 0.24)]
    assert [hit.id for hit in fuse(keyword, vector, 0.4)] == [1, 2]
    fused = fuse(keyword, vector, 0.4, unrelated=0.3)
    assert [hit.score for hit in fused] == pytest.approx([0.6 + 0.4 * 0.2 / 0.6, 0.6 * 0.5 + 0.4])
    assert [hit.id for hit in fuse(keyword, vector, 0.6, unrelated=0.3)] == [2, 1]
    assert [hit.id for hit in fuse(keyword, vector, 0.6)] == [1, 2]
    (only,) = fuse([], [(1, 0.1), (2, 0.3)], 1.0, unrelated=0.3)
    assert only.id == 1
