"""Tidying changes no answer: segments are merged, texts long gone leave, writers are not disturbed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from engine import notes
from engine.notes import lists, prepare, upkeep
from engine.notes.model import JobStatus, Mode
from engine.notes.worker import Worker
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.integration.vault import Vault

QUERIES = ["owl", "common words", "note 7", '"common words"', "swift lark", "real-time"]


async def answers(vault: Vault) -> list[list[tuple[str, float]]]:
    found = [await vault.notes.search(query, mode=Mode.KEYWORD, k=50) for query in QUERIES]
    return [[(hit.reference, hit.score) for hit in result.citations] for result in found]


async def statistics(vault: Vault) -> tuple[int, int, list[int]]:
    async with vault.database.connection() as connection:
        whole = await lists.collection(connection)
    return whole.documents, whole.total_length, whole.orphans.tolist()


@pytest.fixture
async def segmented(vault: Vault) -> Vault:
    """Many segments, as many single saves leave behind; some passages without a word."""
    for number in range(12):
        birds = ["owl", "swift", "lark"][number % 3]
        await vault.save(f"{number}.md", f"# Note {number}\n\n{birds} common words {number}\n")
    await vault.save("mute.md", "***\n")
    return vault


async def test_merging_changes_no_answer(segmented: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    before, counted = await answers(segmented), await statistics(segmented)
    segments = await segmented.value("SELECT count(*) FROM segment")
    assert segments >= 12
    monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 5)
    await upkeep.once(segmented.database)
    assert await segmented.value("SELECT count(*) FROM segment") == 1
    assert await segmented.value("SELECT count(DISTINCT segment) FROM posting") == 1
    assert (await answers(segmented), await statistics(segmented)) == (before, counted)
    await segmented.check()


async def test_few_segments_are_left_alone(segmented: Vault) -> None:
    before = await segmented.rows("SELECT id FROM segment ORDER BY id")
    await upkeep.once(segmented.database)
    assert await segmented.rows("SELECT id FROM segment ORDER BY id") == before


async def test_large_segments_are_left_out_while_the_small_ones_suffice(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 5)
    large = await segmented.value("SELECT min(id) FROM segment")
    await segmented.rows("UPDATE segment SET passages = passages + 100000 WHERE id = %s", large)
    await upkeep.once(segmented.database)
    assert large in {row[0] for row in await segmented.rows("SELECT id FROM segment")}
    assert await segmented.value("SELECT count(*) FROM segment") == 2


async def test_what_is_orphaned_counts_nowhere_and_is_found_nowhere(segmented: Vault) -> None:
    await segmented.save("0.md", "something else\n")
    documents, length, orphans = await statistics(segmented)
    live = "FROM passage WHERE orphaned_at IS NULL AND length > 0"
    assert [(documents, length)] == await segmented.rows(f"SELECT count(*), sum(length) {live}")
    assert len(orphans) >= 1
    assert "0.md" not in await segmented.found("owl", k=50)


async def test_purging_removes_old_orphans_with_postings_and_vectors(segmented: Vault) -> None:
    for number in range(0, 12, 2):
        (segmented.root / f"{number}.md").unlink()
    await segmented.index(embed=True)
    before, (documents, length, orphans) = await answers(segmented), await statistics(segmented)
    assert len(orphans) >= 6
    await upkeep.once(segmented.database)
    assert await segmented.value("SELECT count(*) FROM passage WHERE orphaned_at IS NOT NULL") > 0, "young"
    await segmented.rows(
        "UPDATE passage SET orphaned_at = now() - interval '8 days' WHERE orphaned_at IS NOT NULL"
    )
    await upkeep.once(segmented.database)
    assert await segmented.value("SELECT count(*) FROM passage WHERE orphaned_at IS NOT NULL") == 0
    assert (await answers(segmented), await statistics(segmented)) == (before, (documents, length, []))
    await segmented.check()


async def age(vault: Vault, days: float, *, but: str = "") -> None:
    """Let what is orphaned be so for a number of days, but for passages of a text."""
    await vault.rows(
        "UPDATE passage SET orphaned_at = now() - %s * interval '1 day'"
        " WHERE orphaned_at IS NOT NULL AND text <> %s",
        days,
        but,
    )


async def overdue(vault: Vault, days: float = 7.5) -> list[int]:
    """Delete half of the notes, long ago; the passages that are left of them."""
    for number in range(0, 12, 2):
        (vault.root / f"{number}.md").unlink()
    await vault.index()
    await age(vault, days)
    return [row[0] for row in await vault.rows("SELECT id FROM passage WHERE orphaned_at IS NOT NULL")]


async def test_few_overdue_passages_wait_for_company_but_no_longer_than_a_day(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PURGE_SHARE", 0.9)
    gone = await overdue(segmented)
    assert await upkeep.purge(segmented.database) == 0
    await age(segmented, 8.1)
    assert await upkeep.purge(segmented.database) == len(gone)
    await segmented.check()


async def test_purging_goes_in_portions_and_reads_only_the_terms_of_what_goes(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "PURGE_PORTION", 2)
    monkeypatch.setattr(upkeep, "TERMS_PORTION", 3)
    monkeypatch.setattr(upkeep, "STORE_BYTES", 10)
    asked: list[set[str]] = []
    real = upkeep._terms

    def noted(passages: Sequence[Any]) -> list[str] | None:
        words = real(passages)
        assert words is not None
        asked.append(set(words))
        return words

    monkeypatch.setattr(upkeep, "_terms", noted)
    gone = await overdue(segmented)
    before = await answers(segmented)
    assert await upkeep.purge(segmented.database) == len(gone)
    assert len(asked) == (len(gone) + 1) // 2
    assert set().union(*asked) < {row[0] for row in await segmented.rows("SELECT term FROM posting")} | {
        str(number) for number in range(12)
    }
    assert await answers(segmented) == before
    await segmented.check()


async def test_what_an_older_program_posted_is_looked_for_everywhere(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its terms were made otherwise: they cannot be made again from the text."""
    monkeypatch.setattr(upkeep, "TERMS_PORTION", 3)
    gone = await overdue(segmented)
    monkeypatch.setattr(prepare, "TERMS_FORMAT", 2)
    assert await upkeep.purge(segmented.database) == len(gone)
    await segmented.check()


async def test_writers_wait_only_while_a_portion_is_taken_out(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While postings are read and thinned notes are saved, and a text that comes back then is kept."""
    text = (segmented.root / "0.md").read_text()
    gone = await overdue(segmented)
    real = upkeep._thinned
    saved: list[str] = []

    async def slowly(*values: Any) -> Any:
        if not saved:
            saved.append("back.md")
            async with asyncio.timeout(10):
                await segmented.notes.ingest(segmented.write("back.md", text))
                await Worker(segmented.database, lease=60, models=tuple).run_until_idle()
        return await real(*values)

    monkeypatch.setattr(upkeep, "_thinned", slowly)
    removed = await upkeep.purge(segmented.database)
    assert 0 < removed < len(gone)
    assert "back.md" in await segmented.found("owl", k=50)
    await segmented.check()


async def test_whoever_works_until_idle_tidies_up(segmented: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 5)
    await segmented.rows("UPDATE job SET finished_at = now() - interval '30 days'")
    await segmented.notes.work_until_idle(embed=False)
    assert await segmented.value("SELECT count(*) FROM segment") == 1
    assert await segmented.jobs() == []


async def test_a_console_that_starts_has_better_to_do_at_first(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[object] = []

    async def noted(database: object) -> None:
        rounds.append(database)

    monkeypatch.setattr(upkeep, "once", noted)
    await segmented.notes.start(watch=False, work=True, embed=False)
    await segmented.enqueue("0.md")
    await eventually(lambda: _done(segmented))
    assert rounds == []
    await segmented.notes._services.stop()
    monkeypatch.setattr(notes, "FIRST_MAINTENANCE", 0.0)
    await segmented.notes.start(watch=False, work=True, embed=False)
    await eventually(lambda: bool(rounds))


async def _done(vault: Vault) -> bool:
    return not await vault.jobs(JobStatus.PENDING) and not await vault.jobs(JobStatus.PROCESSING)


async def test_a_text_that_came_back_in_time_is_not_purged(segmented: Vault) -> None:
    text = (segmented.root / "0.md").read_text()
    (segmented.root / "0.md").unlink()
    await segmented.index()
    await segmented.rows(
        "UPDATE passage SET orphaned_at = now() - interval '8 days' WHERE orphaned_at IS NOT NULL"
    )
    await segmented.save("back.md", text)
    await upkeep.once(segmented.database)
    assert "back.md" in await segmented.found("owl", k=50)
    await segmented.check()


async def test_a_writer_is_not_disturbed_by_a_merge(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merge is held open in its transaction while notes are saved, searched and deleted."""
    async with segmented.database.transaction() as connection:
        monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 5)
        assert await upkeep._may_tidy(connection)
        assert await upkeep.merge_segments(connection) > 0
        async with asyncio.timeout(5):
            await segmented.save("during.md", "written during the merge\n")
            (segmented.root / "3.md").unlink()
            await segmented.index()
            assert await segmented.found("merge") == ["during.md"]
    assert await segmented.found("merge") == ["during.md"]
    assert await segmented.value("SELECT count(*) FROM segment") == 2
    await segmented.check()


async def test_writing_merging_purging_and_searching_at_once(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 2)
    monkeypatch.setattr(upkeep, "KEEP_ORPHANS", "0 seconds")
    await vault.save("anchor.md", "anchor stays\n")

    async def writing() -> None:
        for number in range(15):
            await vault.save(f"{number % 4}.md", f"text {number} common\n\nsecond {number % 3} common\n")

    async def tidying() -> None:
        for _ in range(15):
            await upkeep.once(vault.database)

    async def searching() -> None:
        for _ in range(15):
            assert await vault.found("anchor") == ["anchor.md"]

    await asyncio.gather(writing(), tidying(), tidying(), searching())
    assert await vault.in_index() == vault.on_disk()
    assert await vault.failures() == {}
    await vault.check()


async def test_only_one_process_tidies_at_a_time(segmented: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 5)
    async with segmented.database.transaction() as connection:
        assert await upkeep._may_tidy(connection)
        before = await segmented.rows("SELECT id FROM segment ORDER BY id")
        await upkeep.once(segmented.database)
        assert await segmented.rows("SELECT id FROM segment ORDER BY id") == before


async def test_a_round_returns_lapsed_jobs_and_waits_with_the_rest_while_jobs_wait(
    segmented: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MANY_SEGMENTS", 5)
    await segmented.enqueue("a.md")
    await segmented.claim()
    await segmented.rows("UPDATE job SET lease_until = now() - interval '1 s' WHERE status = 'processing'")
    await upkeep.once(segmented.database)
    assert [job.path for job in await segmented.jobs(JobStatus.PENDING)] == ["a.md"]
    assert await segmented.value("SELECT count(*) FROM segment") >= 12
