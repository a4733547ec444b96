"""A program that chunks or splits otherwise: what an older one indexed is drift, and vectors are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.notes import prepare
from engine.notes.chunking import Chunk, chunk
from engine.notes.model import DriftCause

if TYPE_CHECKING:
    from tests.integration.vault import AttentiveEmbedder, Vault


@pytest.fixture
async def older(vault: Vault, embedder: AttentiveEmbedder) -> Vault:
    """Notes that the program of before indexed, vectors and all."""
    vault.write("a.md", "owls hunt\n\nlarks sing\n")
    vault.write("b.md", "owls hunt\n")
    await vault.index(embed=True)
    embedder.asked.clear()
    return vault


async def test_what_an_older_version_indexed_is_drift_and_mends_itself(
    older: Vault, embedder: AttentiveEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "FORMAT", 2)

    def by_lines(text: str) -> list[Chunk]:
        lines = enumerate(text.splitlines(), 1)
        return [Chunk(number, number, line, ()) for number, line in lines if line]

    monkeypatch.setattr(prepare, "chunk", by_lines)
    before = await older.passages()
    report = await older.notes.drift()
    assert {(row.path, row.cause, row.detail) for row in report.rows} == {
        (path, DriftCause.CHANGED, "indexed by an older version") for path in ("a.md", "b.md")
    }
    await older.index(embed=True)
    assert (await older.notes.drift()).rows == ()
    assert embedder.asked == [text for text in ("larks sing",) if text not in before]
    assert await older.notes.index_all() == 0
    await older.check()


async def test_other_terms_are_posted_and_the_vectors_kept(
    older: Vault, embedder: AttentiveEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = prepare.indexed_terms
    monkeypatch.setattr(prepare, "indexed_terms", lambda piece: [*real(piece), "zebra"])
    monkeypatch.setattr(prepare, "FORMAT", 2)
    monkeypatch.setattr(prepare, "TERMS_FORMAT", 2)
    assert await older.found("zebra") == []
    await older.index(embed=True)
    assert sorted(await older.found("zebra")) == ["a.md", "b.md"]
    assert sorted(await older.found("owls")) == ["a.md", "b.md"]
    assert embedder.asked == []
    live = "FROM passage WHERE orphaned_at IS NULL"
    assert await older.rows(f"SELECT DISTINCT format {live}") == [(2,)]
    missing = f"SELECT id {live} AND id NOT IN (SELECT passage FROM embedding WHERE state = 'embedded')"
    assert await older.rows(missing) == []


async def test_an_older_program_leaves_alone_what_a_newer_one_indexed(
    older: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(prepare, "FORMAT", 2)
        await older.index()
    assert (await older.notes.drift()).rows == ()
    await older.notes.ingest(older.root / "a.md")
    await older.notes.work_until_idle(embed=False)
    assert await older.rows("SELECT DISTINCT format FROM file") == [(2,)]


def test_the_chunks_of_this_version_are_those_it_says() -> None:
    """Whoever changes what is made of a note raises FORMAT (and TERMS_FORMAT), and this line with it."""
    text = "# Owls\n\nreal-time `my_var` 夢を見る\n\n* camelCase\n* C++ 1.0.21\n"
    made = [(p.line_start, p.line_end, p.heading, prepare.indexed_terms(p)) for p in chunk(text)]
    words = "owls real-time real time my_var my var 夢を を見 見る 夢 見 camelcase camel case c++ c 1.0.21 1 0 21 owls"
    assert made == [(1, 6, ("Owls",), words.split())]
    assert (prepare.FORMAT, prepare.TERMS_FORMAT) == (1, 1)


async def test_a_note_that_is_chunked_as_before_keeps_its_rows(vault: Vault) -> None:
    await vault.save("a.md", "# Owls\n\nHunt.\n\n## Food\n\nMice.\n")
    await vault.save("b.md", "# Swifts\n\nFly.\n")
    before = await vault.rows("SELECT file, position, xmin::text FROM chunk ORDER BY 1, 2")
    await vault.rows("UPDATE file SET format = 0")
    vault.write("b.md", "# Swifts\n\nFly high.\n")
    await vault.index()
    assert await vault.rows("SELECT DISTINCT format FROM file") == [(prepare.FORMAT,)]
    after = await vault.rows("SELECT file, position, xmin::text FROM chunk ORDER BY 1, 2")
    assert after[:2] == before[:2]
    assert after[2][:2] == before[2][:2]
    assert after[2] != before[2]
    assert await vault.found("high") == ["b.md"]
    await vault.check()
