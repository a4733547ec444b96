"""What a change on the disk costs: found by its words at once, and nothing unchanged embedded again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from engine.notes.model import Mode

if TYPE_CHECKING:
    from tests.integration.vault import AttentiveEmbedder, Vault

THREE = (
    "# Birds\n\n## Owls\n\nOwls hunt at night.\n\n## Swifts\n\nSwifts sleep on the wing.\n\n## Larks\n\n{}\n"
)


async def test_a_saved_note_is_found_by_its_words_before_any_vector_is_made(vault: Vault) -> None:
    await vault.save("birds.md", THREE.format("Larks sing at dawn."))
    (citation,) = (await vault.notes.search("swifts wing", mode=Mode.KEYWORD)).citations
    assert citation.reference == "birds.md:L7-L9"
    assert citation.text == "## Swifts\n\nSwifts sleep on the wing."
    assert (citation.heading, citation.distance) == (("Birds", "Swifts"), None)
    assert [citation.text[start:end] for start, end in citation.matches] == ["Swifts", "Swifts", "wing"]
    assert await vault.value("SELECT count(*) FROM embedding WHERE state = 'embedded'") == 0


async def test_an_edit_replaces_only_what_changed(vault: Vault, embedder: AttentiveEmbedder) -> None:
    await vault.save("birds.md", THREE.format("Larks sing at dawn."), embed=True)
    before = await vault.passages()
    rows = await vault.rows("SELECT passage, xmin::text FROM embedding ORDER BY passage")
    embedder.asked.clear()

    await vault.save("birds.md", THREE.format("Larks nest on the ground."), embed=True)
    after = await vault.passages()
    gone = "## Larks\n\nLarks sing at dawn."
    new = "## Larks\n\nLarks nest on the ground."
    assert {text: after[text] for text in before if text != gone} == {
        text: identity for text, identity in before.items() if text != gone
    }
    assert set(after) - set(before) == {new}
    assert embedder.asked == [f"Birds > Larks\n{new}"]
    now = await vault.rows(
        "SELECT passage, xmin::text FROM embedding WHERE passage = ANY(%s) ORDER BY passage",
        [row[0] for row in rows],
    )
    assert now == rows, "the rows of the other vectors were not even touched"
    assert await vault.found("dawn") == []
    assert await vault.found("ground") == ["birds.md"]
    await vault.check()


async def test_lines_that_moved_keep_their_passages_and_get_their_new_numbers(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    await vault.save("a.md", "## Owls\n\nOwls hunt.\n", embed=True)
    embedder.asked.clear()
    await vault.save("a.md", "\n\n\n## Owls\n\nOwls hunt.\n", embed=True)
    (citation,) = (await vault.notes.search("owls", mode=Mode.KEYWORD)).citations
    assert (citation.line_start, citation.line_end) == (4, 6)
    assert embedder.asked == []


async def test_rename_copy_and_revert_embed_nothing(vault: Vault, embedder: AttentiveEmbedder) -> None:
    old = THREE.format("Larks sing at dawn.")
    await vault.save("deep/birds.md", old, embed=True)
    await vault.save("deep/birds.md", THREE.format("Nothing."), embed=True)
    embedder.asked.clear()

    await vault.save("deep/birds.md", old, embed=True)
    shutil.copy(vault.root / "deep/birds.md", vault.root / "copy.md")
    await vault.index(embed=True)
    (vault.root / "copy.md").rename(vault.root / "renamed.md")
    (vault.root / "deep").rename(vault.root / "shallow")
    await vault.index(embed=True)

    assert embedder.asked == []
    assert sorted(await vault.in_index()) == ["renamed.md", "shallow/birds.md"]
    (citation,) = (await vault.notes.search("dawn", mode=Mode.VECTOR, k=1)).citations
    assert (citation.distance is not None, citation.copies) == (True, 1)
    await vault.check()


async def test_a_deleted_note_is_found_no_more_and_comes_back_without_a_new_vector(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    await vault.save("other.md", "Something else stays.\n", embed=True)
    await vault.save("owls.md", "Owls hunt.\n", embed=True)
    (vault.root / "owls.md").unlink()
    await vault.index(embed=True)
    assert await vault.found("owls") == []
    assert (await vault.notes.search("owls", mode=Mode.VECTOR, max_distance=2)).citations[
        0
    ].path == "other.md"
    embedder.asked.clear()
    await vault.save("owls.md", "Owls hunt.\n", embed=True)
    assert await vault.found("owls") == ["owls.md"]
    assert embedder.asked == []
    await vault.check()


async def test_an_emptied_note_loses_its_chunks_and_stays_known(vault: Vault) -> None:
    await vault.save("a.md", "Owls hunt.\n")
    for nothing in ("", "\n \n\t\n", "\ufeff"):
        await vault.save("a.md", nothing)
        assert await vault.found("owls") == []
        assert await vault.in_index() == vault.on_disk()
        assert await vault.value("SELECT count(*) FROM chunk") == 0
    await vault.check()


async def test_the_same_text_in_several_notes_is_one_passage_and_one_vector(
    vault: Vault, embedder: AttentiveEmbedder
) -> None:
    for path in ("a.md", "b.md", "sub/c.md"):
        vault.write(path, "Owls hunt at night.\n\nOwls hunt at night.\n")
    vault.write("new.md", "Owls hunt at night.\n\nOwls hunt at night.\n", mtime=2_000_000_000)
    await vault.index(embed=True)
    (citation,) = (await vault.notes.search("owls", mode=Mode.KEYWORD)).citations
    assert (citation.path, citation.copies) == ("new.md", 3)
    assert len(embedder.asked) == 1
    (vault.root / "new.md").unlink()
    await vault.index()
    (citation,) = (await vault.notes.search("owls", mode=Mode.KEYWORD)).citations
    assert citation.copies == 2
    await vault.check()


async def test_the_same_text_under_another_heading_is_another_passage(vault: Vault) -> None:
    await vault.save("a.md", "# Owls\n\n## Food\n\nMice.\n")
    await vault.save("b.md", "# Cats\n\n## Food\n\nMice.\n")
    headings = [hit.heading for hit in (await vault.notes.search("mice", mode=Mode.KEYWORD)).citations]
    assert sorted(headings) == [("Cats", "Food"), ("Owls", "Food")]


async def test_a_touch_writes_only_the_stamp(vault: Vault) -> None:
    await vault.save("a.md", "Owls hunt.\n")
    chunks = await vault.rows("SELECT xmin::text FROM chunk")
    vault.write("a.md", "Owls hunt.\n", mtime=1_000_000_000)
    await vault.notes.ingest(vault.root / "a.md")
    await vault.notes.work_until_idle(embed=False)
    assert await vault.value("SELECT mtime_ns FROM file") == 1_000_000_000 * 10**9
    assert await vault.rows("SELECT xmin::text FROM chunk") == chunks


async def test_an_older_reading_never_overwrites_a_newer_one(vault: Vault) -> None:
    """The note is saved again between being read and being written: the second job has the last word."""
    from engine.notes import index
    from engine.notes.prepare import prepare

    await vault.notes.ingest(vault.write("a.md", "first\n"))
    held = await vault.claim("slow")
    read = prepare(held, {})
    await vault.notes.ingest(vault.write("a.md", "second\n"))
    assert await vault.claim("quick") == [], "nobody else may have the path meanwhile"
    await vault.lapse()  # the slow worker is taken for dead; another does the job
    await vault.notes.work_until_idle(embed=False)
    async with vault.database.connection() as connection:
        batch = await index.draft(connection, read)
    async with vault.database.transaction() as connection:
        written = await index.write(connection, "slow", batch, ())
    assert written.files == 0
    assert await vault.in_index() == vault.on_disk()
    assert await vault.found("second") == ["a.md"]
