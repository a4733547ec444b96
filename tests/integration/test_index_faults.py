"""Notes that cannot be indexed: said so by name, their old index kept, and the others go on."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.notes import disk, index
from engine.notes.chunking import Chunk, chunk
from engine.notes.model import JobStatus
from engine.notes.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.vault import Vault

BAD = {
    "utf16.md": ("Owls".encode("utf-16"), "UTF-16"),
    "utf16-without-mark.md": ("Owls hunt at night".encode("utf-16-le"), "UTF-16"),
    "latin.md": ("Käuze\n".encode("latin-1"), "byte 2 (0xe4) in line 1"),
    "nul.md": (b"Owls\n\0\n", "NUL byte: byte 6 in line 2"),
}


async def test_undecodable_notes_fail_by_name_and_the_others_go_on(vault: Vault) -> None:
    for path, (raw, _) in BAD.items():
        vault.write(path, raw)
    vault.write("good.md", "Owls hunt.\n")
    await vault.index()
    failures = await vault.failures()
    assert set(failures) == set(BAD)
    for path, (_, reason) in BAD.items():
        assert str(vault.root / path) in failures[path]
        assert reason in failures[path]
    assert await vault.found("owls") == ["good.md"]


@pytest.mark.parametrize("path", BAD)
async def test_a_note_that_becomes_undecodable_keeps_its_old_index(vault: Vault, path: str) -> None:
    await vault.save(path, "Owls hunt.\n")
    await vault.save(path, BAD[path][0])
    assert set(await vault.failures()) == {path}
    assert await vault.found("owls") == [path]
    await vault.save(path, "Larks sing.\n")
    assert await vault.failures() == {}
    assert await vault.found("larks") == [path]


async def test_an_unreadable_note_keeps_its_old_index(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rights are taken away in a real process of another user where there is one (see below)."""
    await vault.save("a.md", "Owls hunt.\n")
    real = os.open

    def refusing(path: object, flags: int, *rest: int, **named: int) -> int:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refusing)
    await vault.notes.ingest(vault.root / "a.md")
    await vault.notes.work_until_idle(embed=False)
    failures = await vault.failures()
    assert failures["a.md"] == f"{vault.root}/a.md cannot be read: Permission denied. Check its rights."
    assert await vault.found("owls") == ["a.md"]


@pytest.fixture
def open_root() -> Iterator[Path]:
    """A folder every user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, and root reads everything")
def test_rights_of_a_file_and_of_a_folder_are_reported_to_an_ordinary_user(open_root: Path) -> None:
    root = open_root
    (root / "seen.md").write_text("x")
    (root / "shut").mkdir()
    (root / "shut/a.md").write_text("x")
    (root / "shut").chmod(0)
    (root / "own.md").write_text("x")
    (root / "own.md").chmod(0)
    script = (
        "import os, sys; from pathlib import Path; from engine.notes import disk; from engine.errors import NoteError\n"
        "os.setgid(65534); os.setuid(65534); root = Path(sys.argv[1]); found = disk.listing(root)\n"
        "print(sorted(found.files), found.unreadable, found.covers('shut/a.md'), found.covers('gone.md'))\n"
        "try: disk.read(root / 'own.md')\n"
        "except NoteError as error: print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, str(root)], capture_output=True, text=True, check=False
    )
    assert result.stdout.splitlines() == [
        "['own.md', 'seen.md'] {'shut': 'Permission denied'} False True",
        f"{root}/own.md cannot be read: Permission denied. Check its rights.",
    ], result.stderr


async def test_a_batch_the_database_refuses_is_taken_apart(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal is the server's own: a constraint that one of the notes violates."""
    from engine.notes import prepare

    for number in range(20):
        vault.write(f"{number}.md", f"word{number}\n")
    real = prepare.passage_hash
    monkeypatch.setattr(
        prepare, "passage_hash", lambda heading, text: b"short" if "word7" in text else real(heading, text)
    )
    await vault.index()
    failures = await vault.failures()
    assert set(failures) == {"7.md"}
    assert f"{vault.root}/7.md cannot be stored: new row for relation" in failures["7.md"]
    assert len(await vault.in_index()) == 19
    await vault.check()


async def test_a_limit_of_the_server_that_one_note_exceeds_stops_that_note_alone(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL calls this an operational error, which is else the server's own trouble."""
    from engine.notes import prepare

    endless = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(4_000))
    real = prepare.indexed_terms
    monkeypatch.setattr(
        prepare, "indexed_terms", lambda piece: [endless] if "word7" in piece.text else real(piece)
    )
    for number in range(10):
        vault.write(f"{number}.md", f"word{number}\n")
    await vault.index()
    assert set(await vault.failures()) == {"7.md"}
    assert len(await vault.in_index()) == 9


async def test_a_fault_of_ours_that_one_note_brings_to_light_stops_that_note_alone(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from engine.notes import prepare

    def stumbling(text: str) -> list[Chunk]:
        if "word7" in text:
            raise IndexError("list index out of range")
        return chunk(text)

    monkeypatch.setattr(prepare, "chunk", stumbling)
    for number in range(10):
        vault.write(f"{number}.md", f"word{number}\n")
    await vault.index()
    assert await vault.failures() == {
        "7.md": f"{vault.root}/7.md cannot be indexed: IndexError: list index out of range."
    }
    assert "Traceback" in caplog.text
    assert len(await vault.in_index()) == 9


async def test_trouble_of_the_server_fails_no_note(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    from psycopg.errors import DiskFull

    async def full(*_: object) -> None:
        raise DiskFull("could not extend file")

    vault.write("a.md", "Owls hunt.\n")
    await vault.notes.index_all()
    with monkeypatch.context() as patch:
        patch.setattr(index, "write", full)
        with pytest.raises(DiskFull):
            await vault.notes.work_until_idle(embed=False)
    assert [job.status for job in await vault.jobs()] == [JobStatus.PENDING]
    await vault.notes.work_until_idle(embed=False)
    assert await vault.found("owls") == ["a.md"]


async def test_a_note_that_is_being_written_waits_for_quiet(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = vault.write("a.md", "x" * 1000)
    real = os.fstat
    looks: list[int] = []

    def growing(descriptor: int) -> os.stat_result:
        looks.append(descriptor)
        if len(looks) < 2 * disk.READ_ATTEMPTS:
            with file.open("a") as stream:
                stream.write("y")
        return real(descriptor)

    monkeypatch.setattr(os, "fstat", growing)
    await vault.notes.index_all()
    await vault.notes.work_until_idle(embed=False)
    assert await vault.in_index() == vault.on_disk()
    assert {(job.status, job.attempts) for job in await vault.jobs()} == {(JobStatus.DONE, 1)}


async def test_a_note_too_large_is_refused_before_it_is_read(vault: Vault) -> None:
    with vault.write("big.md", "").open("r+b") as stream:
        stream.truncate(65 * 1024 * 1024)  # a hole: no bytes on the disk
    await vault.index()
    assert "has 68,157,440 bytes" in (await vault.failures())["big.md"]


async def test_the_worker_reports_what_it_did_and_goes_on_after_a_fault(
    vault: Vault, caplog: pytest.LogCaptureFixture
) -> None:
    vault.write("bad.md", b"\xff\xff")
    vault.write("good.md", "Owls hunt.\n")
    await vault.notes.index_all()
    with caplog.at_level("INFO", "noctuary.worker"):
        await Worker(vault.database, lease=60, models=tuple).run_until_idle()
    assert "indexed 1, unchanged 0, deleted 0, new passages 1" in caplog.text
    assert f"{vault.root}/bad.md" in caplog.text
