"""Windows filled with counted atoms hold the whole text, in order, within their size."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from engine.models.embedding.counted import ATOM, Piece, atoms, grouped, packed, whole

BLANKS_AND_WORDS = st.text(st.sampled_from("ab \n\t\u3000数x\u0301"), max_size=300)


@given(st.text(max_size=300) | BLANKS_AND_WORDS)
def test_the_atoms_of_a_text_are_the_text(text: str) -> None:
    parts = atoms(text)
    assert "".join(parts) == text
    assert all(part and len(part.lstrip()) <= ATOM for part in parts)


@given(st.lists(st.integers(1, 9), max_size=80), st.integers(9, 40), st.integers(0, 8))
def test_windows_hold_every_atom_in_order_and_none_is_too_long(
    tokens: list[int], size: int, overlap: int
) -> None:
    parts = [f"<{number}>" for number in range(len(tokens))]
    pieces = list(packed(7, parts, tokens, size, overlap))
    held = [[int(number) for number in piece.body.strip("<>").split("><") if number] for piece in pieces]
    seen = -1
    for numbers, piece in zip(held, pieces, strict=True):
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else not tokens
        assert len(piece.ids) == sum(tokens[number] for number in numbers) <= size
        fresh = [number for number in numbers if number > seen]
        assert piece.weight == max(1, sum(tokens[number] for number in fresh))
        assert fresh == list(range(seen + 1, seen + 1 + len(fresh)))
        assert fresh or not tokens
        seen = max([seen, *numbers])
    assert seen == len(tokens) - 1
    for before, after in itertools.pairwise(held):
        shared = sorted(set(before) & set(after))
        assert sum(tokens[number] for number in shared) <= overlap


def test_an_atom_beyond_the_size_stands_alone() -> None:
    pieces = list(packed(0, ["a", " huge", " b"], [1, 50, 1], 10, 5))
    assert [piece.body for piece in pieces] == ["a", " huge", " b"]


def test_nothing_is_one_window() -> None:
    assert list(packed(3, [], [], 10, 2)) == [Piece(3, range(0), 1, "")]


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(10, 100), st.integers(1, 5))
def test_groups_hold_each_piece_once_within_their_bounds(lengths: list[int], tokens: int, most: int) -> None:
    pieces = [whole(number, "text", length) for number, length in enumerate(lengths)]
    groups = grouped(pieces, tokens, most)
    assert sorted(piece.text for group in groups for piece in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) <= most
        assert len(group) == 1 or len(group) * max(len(piece.ids) for piece in group) <= tokens
