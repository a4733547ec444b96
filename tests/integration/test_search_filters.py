"""Filters are complete and right: a search within them finds what an exhaustive one finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgvector.psycopg import register_vector_async

from engine.database.bulk import every
from engine.errors import QueryError
from engine.notes import index, lists, scope
from engine.notes.model import Mode
from tests.integration.bulk import DIMENSION, VECTORS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from psycopg import AsyncConnection

    from tests.integration.vault import Vault

PATHS = [
    "a.md",
    "projects/b.md",
    "projects/deep/c.md",
    "other/projects/d.md",
    "archive/2024/e.md",
    "!odd.md",
    "#x.md",
]


@pytest.fixture
async def filed(vault: Vault) -> Vault:
    """The same word in notes of several folders, under several headings."""
    for number, path in enumerate(PATHS):
        vault.write(path, f"# Part {number % 2}\n\n## Inner {number}\n\ncommon word {number}\n")
    await vault.index(embed=True)
    return vault


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*.md", PATHS),
        ("/a.md", ["a.md"]),
        ("/projects/", ["projects/b.md", "projects/deep/c.md"]),
        ("projects/", ["other/projects/d.md", "projects/b.md", "projects/deep/c.md"]),
        ("projects/*.md", ["projects/b.md"]),
        ("archive/**/*.md", ["archive/2024/e.md"]),
        ("[ab].md", ["a.md", "projects/b.md"]),
        ("!odd.md", ["!odd.md"]),
        ("#x.md", ["#x.md"]),
        ("nowhere/*", []),
    ],
)
async def test_a_glob_reads_like_a_line_of_gitignore(
    filed: Vault, mode: Mode, glob: str, expected: list[str]
) -> None:
    found = await filed.found("common word", path_glob=glob, mode=mode, max_distance=2, k=50)
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_path_that_no_file_has_is_told_from_words_that_are_not_there(
    filed: Vault, mode: Mode
) -> None:
    async def matches(query: str, **options: Any) -> tuple[int, bool]:
        found = await filed.notes.search(query, mode=mode, **options)
        return len(found.citations), found.path_matches

    assert await matches("common word", path_glob="nowhere/*") == (0, False)
    assert await matches("zebra", path_glob="projects/*.md", max_distance=0.01) == (0, True)
    assert await matches("zebra", max_distance=0.01) == (0, True)
    assert await matches("zebra", heading="nowhere", max_distance=0.01) == (0, True)
    within = filed.root / "projects"
    assert await matches("common word", path_glob="/archive/**", folder=within) == (0, False)


async def test_a_heading_is_a_part_of_any_heading_above_whatever_its_case(filed: Vault) -> None:
    assert await filed.found("common", heading="INNER 3") == [PATHS[3]]
    assert sorted(await filed.found("common", heading="part 1")) == sorted(PATHS[1::2])
    assert await filed.found("common", heading="100%") == []
    assert await filed.found("common", heading="_nner") == [], "not a pattern"
    assert await filed.found("common", heading="part 1", path_glob="projects/*.md") == ["projects/b.md"]


async def test_a_folder_is_a_root_or_any_folder_in_it(filed: Vault, tmp_path: Path) -> None:
    other = tmp_path / "second"
    other.mkdir()
    (other / "a.md").write_text("common word elsewhere\n")
    await filed.notes.add_folder(other)
    await filed.index()
    assert len(await filed.found("common", k=50)) == len(PATHS) + 1
    assert await filed.found("common", folder=other) == ["a.md"]
    assert len(await filed.found("common", folder=filed.root, k=50)) == len(PATHS)
    assert sorted(await filed.found("common", folder=filed.root / "projects")) == [
        "projects/b.md",
        "projects/deep/c.md",
    ]
    for nothing in ("proj", "nowhere", "projects/b.md", "\udcff"):  # `proj` is only how a folder begins
        with pytest.raises(QueryError, match="Nothing is indexed in the folder"):
            await filed.notes.search("common", folder=filed.root / nothing)
    with pytest.raises(QueryError, match=f"is not indexed. Indexed folders: {filed.root}, {other}"):
        await filed.notes.search("common", folder=tmp_path)
    assert await filed.found("common", heading="\udcff") == []


async def test_a_copy_outside_the_filter_is_neither_shown_nor_counted(filed: Vault) -> None:
    filed.write("zz/copy.md", (filed.root / "a.md").read_text(), mtime=2_000_000_000)
    await filed.index()
    (hit,) = (await filed.notes.search("common", path_glob="/a.md", mode=Mode.KEYWORD)).citations
    assert (hit.path, hit.copies) == ("a.md", 0)
    (hit,) = (await filed.notes.search('"common word 0"', mode=Mode.KEYWORD)).citations
    assert (hit.path, hit.copies) == ("zz/copy.md", 1)


async def test_a_glob_that_cannot_be_read_is_refused(filed: Vault) -> None:
    with pytest.raises(QueryError, match="is not a path pattern"):
        await filed.notes.search("common", path_glob="a\\")


def chosen(random: np.random.Generator, share: int) -> NDArray[np.int32]:
    """Live passages with a vector, one of `share`."""
    live = np.array([number for number in range(1, VECTORS + 1) if number % 1000], np.int32)
    return np.sort(random.choice(live, len(live) // share, replace=False))


async def test_a_filter_of_one_percent_is_complete_and_right(
    bulk_connection: AsyncConnection[Any],
) -> None:
    random = np.random.default_rng(7)
    only = chosen(random, 100)
    vectors = {
        row[0]: row[1].to_numpy().astype(np.float64) for row in await _vectors(bulk_connection, only.tolist())
    }
    for _ in range(5):
        query = random.normal(size=DIMENSION).astype(np.float32)
        query /= np.linalg.norm(query)
        true = {each: 1 - vector @ query / np.linalg.norm(vector) for each, vector in vectors.items()}
        found = await lists.by_vector(bulk_connection, (1, DIMENSION), query, only, 10)
        assert [identity for identity, _ in found] == sorted(true, key=lambda each: true[each])[:10]
        assert [distance for _, distance in found] == pytest.approx(sorted(true.values())[:10], abs=1e-4)
        everything = await lists.by_vector(bulk_connection, (1, DIMENSION), query, only, 100)
        assert len(everything) == len(only)


async def _vectors(connection: AsyncConnection[Any], only: list[int]) -> list[tuple[int, Any]]:
    await register_vector_async(connection)
    cursor = await connection.execute(
        "SELECT passage, vector::vector(384)::halfvec FROM embedding WHERE passage = ANY(%s)", (only,)
    )
    return await cursor.fetchall()


async def test_a_wide_filter_is_walked_until_enough_pass_it(
    bulk_connection: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "EXACT_WITHIN", 0)
    random = np.random.default_rng(9)
    only = chosen(random, 10)
    hits = 0
    for _ in range(5):
        query = random.normal(size=DIMENSION).astype(np.float32)
        found = await lists.by_vector(bulk_connection, (1, DIMENSION), query, only, 20)
        exact = await lists.distances(bulk_connection, 1, query, only.tolist(), 20)
        assert len(found) == 20
        assert {identity for identity, _ in found} <= set(only.tolist())
        assert [distance for _, distance in found] == sorted(distance for _, distance in found)
        hits += len(dict(found).keys() & dict(exact).keys())
    assert hits >= 97, f"{hits} of 100"


async def test_a_wide_filter_is_complete_where_the_walk_gives_up(
    bulk_connection: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "EXACT_WITHIN", 0)
    random = np.random.default_rng(11)
    only = chosen(random, 20)
    await bulk_connection.execute("SELECT set_config('hnsw.max_scan_tuples', '1', true)")
    query = random.normal(size=DIMENSION).astype(np.float32)
    found = await lists.by_vector(bulk_connection, (1, DIMENSION), query, only, 100)
    assert found == await lists.distances(bulk_connection, 1, query, only.tolist(), 100)
    assert len(found) == 100


@given(st.sets(st.integers(0, 3000), max_size=40))
def test_bits_are_read_as_the_database_reads_them(ids: set[int]) -> None:
    packed = lists.bits(np.array(sorted(ids), np.int32))
    # get_bit: https://www.postgresql.org/docs/current/functions-binarystring.html
    assert {n for n in range(len(packed) * 8) if packed[n // 8] >> (n % 8) & 1} == ids


async def test_the_walk_finds_nearly_all_of_the_nearest_and_no_orphan(
    bulk_connection: AsyncConnection[Any],
) -> None:
    random = np.random.default_rng(8)
    hits = 0
    live = [number for number in range(1, VECTORS + 1) if number % 1000]
    for _ in range(10):
        query = random.normal(size=DIMENSION).astype(np.float32)
        found = await lists.by_vector(bulk_connection, (1, DIMENSION), query, None, 10)
        exact = await lists.distances(bulk_connection, 1, query, live, 10)
        assert len(found) == 10
        assert [d for _, d in found] == sorted(d for _, d in found)
        assert not any(identity % 1000 == 0 for identity, _ in found)
        hits += len({identity for identity, _ in found} & {identity for identity, _ in exact})
    assert hits >= 97, f"{hits} of 100"


@given(
    st.lists(
        st.sampled_from(["a", "b", "*", "**", "?", "[ab]", "\\a", " ", "/", "!", "#", ".md"]), max_size=6
    ),
    st.lists(st.sampled_from(["a", "b", "ab", " ", "a.md", "!a"]), min_size=1, max_size=4),
)
def test_a_glob_begins_with_what_every_path_it_matches_begins_with(glob: list[str], path: list[str]) -> None:
    pattern, name = "".join(glob), "/".join(path)
    try:
        matching = scope._matching([(1, name)], pattern)
    except QueryError:
        return
    assert not matching or name.startswith(scope._beginning(pattern))


async def test_typing_on_under_a_glob_reads_the_paths_again_only_when_files_came_or_went(
    filed: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    async def counted(cursor: Any) -> list[tuple[Any, ...]]:
        read.append(1)
        return await every(cursor)

    monkeypatch.setattr(scope, "every", counted)
    for query in ("com", "comm", "common"):
        assert await filed.found(query, path_glob="projects/*.md", prefix=True) == ["projects/b.md"]
    assert len(read) == 1
    await filed.save("projects/new.md", "common too\n")
    assert sorted(await filed.found("common", path_glob="projects/*.md")) == [
        "projects/b.md",
        "projects/new.md",
    ]
    (filed.root / "projects/b.md").unlink()
    await filed.index()
    assert await filed.found("common", path_glob="projects/*.md") == ["projects/new.md"]
    assert await filed.found("common", path_glob="other/**") == ["other/projects/d.md"]


async def test_a_filter_by_folder_costs_no_list_of_files(filed: Vault) -> None:
    async with filed.database.connection() as connection:
        found = await scope.Scopes().resolve(
            connection, folder=filed.root / "projects", path_glob=None, heading=None
        )
    assert found.places == {"root": filed.folder.id, "below": "projects/", "files": None}
    assert found.passages is not None
    assert len(found.passages) == 2


async def test_a_folder_is_forgotten_without_its_passages_passing_through_this_process(
    filed: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise AssertionError("rows were fetched")

    async with filed.database.transaction() as connection:
        monkeypatch.setattr(psycopg.AsyncCursor, "fetchall", refused)
        await index.forget_folder(connection, filed.folder.id)
        monkeypatch.undo()
    await filed.check()
    assert await filed.passages() == {}
