"""What is copied into the index is what was meant: read back as PostgreSQL documents its binary format."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.notes.packing import Postings, passage_rows, pending_rows, place_rows
from engine.notes.prepare import PassageText
from engine.text.ranking import POSTING

words = st.text("abcäé字\U0001f600z", min_size=1, max_size=4)
counters = st.dictionaries(words, st.integers(1, 400), max_size=12)
passages = st.lists(counters, max_size=8)


def passage(terms: dict[str, int], number: int = 0) -> PassageText:
    counts = Counter(terms)
    identity = number.to_bytes(32, "big")
    return PassageText(
        identity, f"Überschrift {number}", f"Text 字 {number}\n", counts, min(counts.total(), 65_535)
    )


def rows(data: bytes) -> list[tuple[bytes, ...]]:
    """The rows of a binary COPY (PostgreSQL documentation, COPY)."""
    assert data[:11] == b"PGCOPY\n\xff\r\n\0"
    assert struct.unpack_from("!ii", data, 11) == (0, 0)
    at, found = 19, []
    while True:
        (fields,) = struct.unpack_from("!h", data, at)
        at += 2
        if fields == -1:
            assert at == len(data)
            return found
        row = []
        for _ in range(fields):
            (size,) = struct.unpack_from("!i", data, at)
            row.append(data[at + 4 : at + 4 + size])
            at += 4 + size
        found.append(tuple(row))


def integer(field: bytes) -> int:
    return int.from_bytes(field, "big", signed=True)


@settings(deadline=None)
@given(passages, st.data())
def test_each_term_has_the_postings_of_the_passages_it_stands_in(
    texts: list[dict[str, int]], data: st.DataObject
) -> None:
    left_out = data.draw(st.sets(st.integers(0, max(0, len(texts) - 1))))
    ids = np.array([0 if each in left_out else 3 * each + 1 for each in range(len(texts))], dtype=np.int32)
    expected: dict[bytes, list[tuple[int, int, int]]] = {}
    for number, terms in enumerate(texts):
        for term, count in terms.items():
            if ids[number]:
                entry = (int(ids[number]), min(sum(terms.values()), 65_535), min(count, 255))
                expected.setdefault(term.encode(), []).append(entry)
    packed = rows(Postings.of([passage(terms) for terms in texts]).rows(7, ids))
    assert [row[0] for row in packed] == sorted(expected), "in the order of the table's key"
    assert {integer(row[1]) for row in packed} <= {7}
    assert {row[0]: np.frombuffer(row[2], POSTING).tolist() for row in packed} == expected


@settings(deadline=None)
@given(passages)
def test_passages_are_written_as_they_are(texts: list[dict[str, int]]) -> None:
    numbered = [(each + 5, passage(terms, each)) for each, terms in enumerate(texts)]
    for row, (identity, text) in zip(rows(passage_rows(1, numbered)), numbered, strict=True):
        assert (integer(row[0]), row[1], integer(row[2])) == (identity, text.hash, 1)
        assert (row[3].decode(), row[4].decode()) == (text.heading, text.text)
        assert (integer(row[5]), len(row[0]), len(row[2])) == (text.length, 4, 2)


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(*[st.integers(1, 2**31 - 1)] * 3), max_size=5), max_size=6))
def test_places_are_numbered_within_their_file(files: list[list[tuple[int, int, int]]]) -> None:
    data = place_rows(
        [10 * number for number in range(len(files))],
        [len(places) for places in files],
        [place for places in files for place in places],
    )
    assert [tuple(map(integer, row)) for row in rows(data)] == [
        (10 * number, position, *place)
        for number, places in enumerate(files)
        for position, place in enumerate(places)
    ]


@settings(deadline=None)
@given(
    st.integers(1, 2**15 - 1), st.dictionaries(st.integers(1, 2**31 - 1), st.integers(-(2**63), 2**63 - 1))
)
def test_each_passage_waits_for_its_vector(model: int, priorities: dict[int, int]) -> None:
    found = rows(pending_rows(model, priorities))
    assert [tuple(map(len, row)) for row in found] == [(2, 4, 8)] * len(priorities)
    assert [tuple(map(integer, row)) for row in found] == [(model, *each) for each in priorities.items()]
