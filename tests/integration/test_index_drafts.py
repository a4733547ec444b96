"""What is made before the writers' lock is taken holds, whatever others wrote meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.notes import index, jobs, upkeep, worker
from engine.notes.prepare import prepare

if TYPE_CHECKING:
    import pytest

    from engine.notes.index import Batch, Written
    from tests.integration.vault import Vault

SHARED = "# Owls\n\nOwls hunt mice at night.\n"


async def drafted(vault: Vault, name: str, *paths: str) -> Batch:
    for path in paths:
        await vault.enqueue(path)
    prepared = prepare(await vault.claim(name), {})
    async with vault.database.connection() as connection:
        return await index.draft(connection, prepared)


async def written(vault: Vault, name: str, batch: Batch) -> Written:
    async with vault.database.transaction() as connection:
        done = await index.write(connection, name, batch, ())
    async with vault.database.transaction() as connection:  # `vault.check` wants a vector for each
        await connection.execute(
            "INSERT INTO embedding (model, passage) SELECT model.id, passage FROM chunk, model"
            " ON CONFLICT DO NOTHING"
        )
    return done


async def test_two_workers_find_the_same_passage_new(vault: Vault) -> None:
    vault.write("a.md", SHARED + "\n## Of a\n\nA barn.\n")
    vault.write("b.md", SHARED + "\n## Of b\n\nA steeple.\n")
    first = await drafted(vault, "one", "a.md")
    second = await drafted(vault, "two", "b.md")
    assert len(first.draft.ids) == len(second.draft.ids) == 2
    assert (await written(vault, "one", first)).new_passages == 2
    assert (await written(vault, "two", second)).new_passages == 1
    places = await vault.rows("SELECT passage, count(*) FROM chunk GROUP BY passage ORDER BY 2")
    assert [count for _, count in places] == [1, 1, 2], "one passage in two places"
    assert await vault.found("steeple") == ["b.md"]
    assert await vault.found("barn") == ["a.md"]
    await vault.check()


async def test_a_passage_that_was_known_is_removed_before_it_is_placed(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    await vault.save("other.md", "An empty folder would be doubted.\n")
    await vault.save("a.md", SHARED + "\n## Of a\n\nA barn.\n")
    (vault.root / "a.md").unlink()
    await vault.index()
    vault.write("b.md", SHARED + "\n## Of b\n\nA steeple.\n")
    batch = await drafted(vault, "one", "b.md")
    assert len(batch.draft.ids) == 1, "the other is an orphan, which would be revived"
    monkeypatch.setattr(upkeep, "KEEP_ORPHANS", "0 seconds")
    monkeypatch.setattr(upkeep, "PURGE_SHARE", 0.0)
    assert await upkeep.purge(vault.database) == 2
    assert (await written(vault, "one", batch)).new_passages == 2
    assert await vault.found("mice") == ["b.md"]
    await vault.check()


async def test_passages_of_a_job_that_was_lost_are_not_written(vault: Vault) -> None:
    vault.write("a.md", "# Barn\n\nBarn owls.\n")
    vault.write("b.md", "# Steeple\n\nSwifts.\n")
    batch = await drafted(vault, "one", "a.md", "b.md")
    await vault.rows("DELETE FROM job WHERE path = 'a.md'")
    done = await written(vault, "one", batch)
    assert (done.files, done.new_passages) == (1, 1)
    assert await vault.value("SELECT count(*) FROM passage") == 1
    await vault.check()


async def test_the_planner_hears_of_growth_once_for_all_workers(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "ANALYSE_IDLE", 3)

    async def known() -> float:
        found = await vault.value("SELECT reltuples FROM pg_class WHERE oid = 'file'::regclass")
        assert isinstance(found, float)
        return found

    for number in range(5):
        vault.write(f"{number}.md", f"note {number}\n")
    await vault.index()
    assert await known() == 5
    for number in range(5, 8):
        vault.write(f"{number}.md", f"note {number}\n")
    async with vault.database.transaction() as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('noctuary:statistics', 0))")
        await vault.index()
        assert await known() == 5, "another sees to it"
    for number in range(3):
        vault.write(f"{number}.md", f"note {number} again\n")
    await vault.index()
    assert await known() == 8
    before = await vault.value("SELECT analyze_count FROM pg_stat_all_tables WHERE relid = 'file'::regclass")
    for number in range(3):
        vault.write(f"{number}.md", f"note {number} once more\n")
    await vault.index()
    after = await vault.value("SELECT analyze_count FROM pg_stat_all_tables WHERE relid = 'file'::regclass")
    assert after == before, "it is as large as it was"


async def test_the_end_of_a_heap_is_shared(vault: Vault) -> None:
    for number in range(300):
        vault.write(f"{number}.md", f"note {number}\n")
        await vault.enqueue(f"{number}.md")

    async def share() -> int:
        async with vault.database.connection() as connection:
            return await jobs.share(connection, "me", most=256)

    assert await share() == 256, "nobody else is at work"
    await vault.claim("me", limit=10)
    assert await share() == 256, "our own do not count"
    await vault.claim("other", limit=10)
    assert await share() == 70
    await vault.claim("third", limit=10)
    assert await share() == 45
    await vault.claim("third", limit=200)
    assert await share() == jobs.SMALLEST_SHARE
