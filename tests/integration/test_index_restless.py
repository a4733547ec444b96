"""Notes that never stand still, jobs that are held back, and batches of large notes: nothing is held up."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from engine.database import bulk
from engine.notes import disk, drift, index, jobs, prepare, worker
from engine.notes.model import JobStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from tests.integration.vault import Vault


@pytest.fixture
def at_each_look(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Callable[[Path], None]], None]:
    """Let something happen to a file whenever it is looked at while it is being read."""
    monkeypatch.setattr(worker, "UNREADY_DELAY", 0.01)

    def happens(file: Path, change: Callable[[Path], None]) -> None:
        real = os.fstat

        def looked_at(descriptor: int) -> os.stat_result:
            if os.readlink(f"/proc/self/fd/{descriptor}") == str(file):  # noqa: PTH115 - a descriptor's name
                change(file)
            return real(descriptor)

        monkeypatch.setattr(os, "fstat", looked_at)

    return happens


async def test_a_log_that_grows_for_ever_is_indexed_as_far_as_it_can_be_read(
    vault: Vault,
    at_each_look: Callable[[Path, Callable[[Path], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = vault.write("log.md", "the first line\n")

    def grow(log: Path) -> None:
        with log.open("a") as stream:
            stream.write("another line, and half of")

    with monkeypatch.context():
        at_each_look(file, grow)
        async with asyncio.timeout(20):
            await vault.index(embed=True)
        assert await vault.found("first") == ["log.md"]
        assert await vault.value("SELECT count(*) FROM embedding WHERE state = 'pending'") == 0
    monkeypatch.undo()
    await vault.index()
    assert await vault.in_index() == vault.on_disk(), "its stamp vouched for nothing"


async def test_a_note_that_is_rewritten_for_ever_fails_visibly(
    vault: Vault, at_each_look: Callable[[Path, Callable[[Path], None]], None]
) -> None:
    file = vault.write("a.md", "x\n")
    numbers = iter(range(1_000_000))
    at_each_look(file, lambda note: note.write_text(f"{next(numbers)} is the number\n"))
    async with asyncio.timeout(20):
        await vault.index()
    assert "keeps changing while it is read" in (await vault.failures())["a.md"]


async def test_jobs_that_are_held_back_hold_up_no_vectors(vault: Vault) -> None:
    await vault.save("a.md", "owls hunt\n")
    await vault.enqueue("later.md", delay=50.0)
    async with asyncio.timeout(20):
        await vault.notes.work_until_idle(embed=True)
    assert await vault.value("SELECT count(*) FROM embedding WHERE state = 'pending'") == 0
    assert [job.path for job in await vault.jobs(JobStatus.PENDING)] == ["later.md"]


async def test_a_job_held_back_for_a_moment_is_waited_for(vault: Vault) -> None:
    await vault.save("a.md", "owls hunt\n")
    (vault.root / "a.md").unlink()
    await vault.save("other.md", "so that the root is not empty\n")
    await vault.enqueue("a.md", delay=0.3)
    await vault.notes.work_until_idle(embed=False)
    assert list(await vault.in_index()) == ["other.md"]


async def test_a_lapsed_lease_holds_up_no_vectors_and_is_taken_over(vault: Vault) -> None:
    vault.write("a.md", "owls hunt\n")
    await vault.enqueue("a.md")
    await vault.claim("killed")
    async with vault.database.connection() as connection:
        assert await jobs.waiting(connection)
        await connection.execute("UPDATE job SET lease_until = now() - interval '1 s'")
        assert not await jobs.waiting(connection)
    await vault.notes.work_until_idle(embed=False)
    assert await vault.found("owls") == ["a.md"]


async def test_a_note_written_again_while_it_is_worked_on_is_queued_by_a_survey(vault: Vault) -> None:
    """The event of the second writing was lost, and the worker had read the first one."""
    await vault.save("old.md", "owls hunt\n")
    vault.write("old.md", "larks sing at dawn\n")
    await vault.enqueue("old.md", "new.md")
    await vault.claim("busy")
    for path in ("old.md", "new.md"):
        vault.write(path, "swifts sleep aloft\n")
    assert await vault.notes.index_all() == 2
    assert await vault.notes.index_all() == 0, "one waits already"
    waiting = await vault.jobs(JobStatus.PENDING)
    assert sorted(job.path for job in waiting) == ["new.md", "old.md"]


async def test_a_note_that_is_worked_on_and_was_not_written_since_is_not_queued_again(vault: Vault) -> None:
    vault.write("a.md", "owls hunt\n")
    await vault.enqueue("a.md")
    await vault.claim("busy")
    await vault.rows("UPDATE job SET started_at = now() + interval '30 seconds'")
    await asyncio.sleep(2 * disk.YOUNG_NS / 1e9)  # until its time stamps can be believed
    assert await vault.notes.index_all() == 0


async def test_a_survey_of_a_part_reads_the_jobs_of_that_part(vault: Vault) -> None:
    await vault.enqueue("a/1.md", "a/b/2.md", "ab/3.md", "4.md")
    async with vault.database.connection() as connection:
        below = await drift.open_jobs(connection, vault.folder, "a")
        everywhere = await drift.open_jobs(connection, vault.folder)
    assert sorted(below) == ["a/1.md", "a/b/2.md"]
    assert len(everywhere) == 4


async def test_a_batch_ends_when_it_holds_enough_text(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "PORTION", 1000)
    for number in range(12):
        vault.write(f"{number}.md", f"word{number} " * 80)
    sizes: list[int] = []
    real = index.write

    async def counted(connection: Any, name: str, batch: Any, models: Any) -> index.Written:
        sizes.append(len(batch.items))
        return await real(connection, name, batch, models)

    monkeypatch.setattr(index, "write", counted)
    await vault.index()
    assert max(sizes) == 3
    assert await vault.in_index() == vault.on_disk()
    assert {job.attempts for job in await vault.jobs()} == {1}
    await vault.check()


async def test_the_words_of_a_note_are_held_once(vault: Vault) -> None:
    """A note of megabytes has each word in many passages: they are a third of what it takes."""
    vault.write("a.md", "".join(f"## Part {number}\n\nowls hunting\n\n" for number in range(50)))
    await vault.enqueue("a.md")
    (note,) = prepare.prepare(await vault.claim(), {})
    assert isinstance(note, prepare.Content)
    words = [word for text in note.passages.values() for word in text.terms if word == "hunting"]
    assert len(words) == 50
    assert len({id(word) for word in words}) == 1


async def test_rows_are_encoded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call for all of them keeps the interpreter, and so the loop, to itself."""
    rows: list[dict[str, object]] = [{"number": number, "text": 'a "word" ü\n'} for number in range(100)]
    calls: list[object] = []
    real = bulk._encode
    monkeypatch.setattr(bulk, "_encode", lambda row: calls.append(row) or real(row))
    assert json.loads(await bulk.as_json(rows)) == rows
    assert calls == rows
    assert await bulk.as_json([]) == "[]"
