"""Parts of the embedded server that need no server."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.database.embedded import locate, starting, tuning
from engine.database.embedded.account import Account, account_for
from engine.database.embedded.flock import FileLock, exclusive
from engine.database.embedded.places import Places
from engine.database.embedded.process import is_server, last_words, rotate
from engine.database.embedded.socketpath import SocketFolder, fits, link_to
from engine.errors import DatabaseUnavailable
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/home/ann/.local/share/noctuary/postgres", True),
        ("/with space/and 'quote' \"/Über 夢", True),
        ("/" + "n" * 88, True),
        ("/" + "n" * 89, False),
        ("/" + "é" * 60, False),
        ("/a,b", False),
        ("relative", False),
        (os.fsdecode(b"/\xff"), False),
    ],
)
def test_what_libpq_would_misread_is_not_given_to_it(folder: str, expected: bool) -> None:
    assert fits(Path(folder)) is expected


def test_a_long_folder_is_named_by_a_descriptor_until_closed(tmp_path: Path) -> None:
    folder = tmp_path / ("n" * 120)
    folder.mkdir()
    (folder / "here").touch()
    socket = SocketFolder(folder)
    assert len(socket.host) < 40
    assert (Path(socket.host) / "here").exists()
    socket.close()
    socket.close()
    assert not Path(socket.host).exists()


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"noctuary-{os.geteuid()}"


def test_a_link_lies_in_a_folder_of_ones_own(temporary: Path, tmp_path: Path) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert link_to(folder).readlink() == folder
        assert link_to(folder).parent == temporary
    assert temporary.stat().st_mode & 0o777 == 0o700
    assert len(list(temporary.iterdir())) == 2


def test_a_folder_that_others_prepared_is_not_trusted(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    temporary.symlink_to(tmp_path / "theirs")
    with pytest.raises(DatabaseUnavailable, match="not a folder of yours alone"):
        link_to(tmp_path)
    temporary.unlink()
    temporary.mkdir()
    temporary.chmod(0o770)
    with pytest.raises(DatabaseUnavailable, match="not a folder of yours alone"):
        link_to(tmp_path)


@AS_ROOT
def test_a_folder_of_another_owner_is_not_trusted(temporary: Path, tmp_path: Path) -> None:
    temporary.mkdir(mode=0o700)
    os.chown(temporary, 65534, 65534)
    with pytest.raises(DatabaseUnavailable, match="not a folder of yours alone"):
        link_to(tmp_path)


def test_locks_count_holders_also_inside_one_process(tmp_path: Path) -> None:
    first, second, third = (FileLock(tmp_path / "lock") for _ in range(3))
    assert first.try_shared()
    assert second.try_shared()
    assert not third.try_exclusive()
    first.release()
    assert not third.try_exclusive()
    second.release()
    assert third.try_exclusive()
    third.release()


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="lock"):
        FileLock(tmp_path / "lock")
    assert not (tmp_path / "elsewhere").exists()


async def test_a_lock_that_is_held_is_waited_for_and_the_wait_can_be_cancelled(tmp_path: Path) -> None:
    waits: list[str] = []

    async def take() -> None:
        async with exclusive(tmp_path / "lock", lambda: waits.append("waits")):
            pass

    async with exclusive(tmp_path / "lock", lambda: waits.append("never")):
        waiting = asyncio.create_task(take())
        cancelled = asyncio.create_task(take())
        await eventually(lambda: len(waits) == 2)
        cancelled.cancel()
        assert not waiting.done()
    await asyncio.wait_for(waiting, 5)
    assert waits == ["waits", "waits"]


def test_a_strangers_process_is_not_the_server(tmp_path: Path) -> None:
    assert not is_server(os.getpid(), Path.cwd())
    postgres = tmp_path / "postgres"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", postgres)
    (tmp_path / "data").mkdir()
    process = subprocess.Popen([postgres, "60"], cwd=tmp_path / "data")
    try:
        assert is_server(process.pid, tmp_path / "data")
        assert not is_server(process.pid, tmp_path)  # a postgres, but another folder's
    finally:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_server(process.pid, tmp_path / "data")  # a zombie by now
        process.wait()


def test_the_servers_last_words_are_those_of_this_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_words(log, 0) == ""
    old = "2026-01-01 UTC [1]  FATAL:  an old reason\n"
    log.write_text(
        old
        + "2026-01-01 UTC [2]  LOG:  starting\n2026-01-01 UTC [2]  FATAL:  could not write: No space left\n"
    )
    assert last_words(log, len(old)) == "could not write: No space left"


def test_the_log_does_not_grow_for_ever(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    rotate(log)
    log.write_bytes(b"x" * (2 * 1024 * 1024 + 1))
    rotate(log)
    assert not log.exists()
    assert (tmp_path / "postgres.log.1").stat().st_size > 2 * 1024 * 1024


@pytest.mark.parametrize(
    ("gigabytes", "shared", "maintenance"),
    [(0.5, "64MB", "128MB"), (2, "128MB", "256MB"), (64, "256MB", "1024MB")],
)
def test_memory_settings_follow_the_machine(gigabytes: float, shared: str, maintenance: str) -> None:
    settings = tuning._settings(int(gigabytes * 1024**3))
    assert settings["shared_buffers"] == shared
    assert settings["maintenance_work_mem"] == maintenance
    assert settings["synchronous_commit"] == "on"
    assert "fsync" not in settings


def test_a_containers_limit_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(tuning, "_CGROUP_LIMIT", limit)
    everything = tuning._memory()
    limit.write_text("max\n")
    assert tuning._memory() == everything
    limit.write_text("104857600\n")
    assert tuning._memory() == 104857600


def test_a_small_shared_memory_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert tuning._shared_memory_type(2**62) == "mmap"
    assert tuning._shared_memory_type(1) == "posix"


@AS_ROOT
def test_root_borrows_an_account_and_keeps_to_an_owners(tmp_path: Path) -> None:
    borrowed = account_for(tmp_path / "new")
    assert borrowed.uid != 0
    assert borrowed.borrowed
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 12345, 12346)
    assert account_for(tmp_path / "home" / "noctuary" / "postgres") == Account(12345, 12346, borrowed=True)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every account can reach, as tmp_path is not."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@AS_ROOT
def test_programs_out_of_reach_are_copied_once(
    open_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = locate._package()
    closed = tmp_path / "venv" / package.name
    part = locate._programs(package).parent
    shutil.copytree(part, closed / part.name, ignore=shutil.ignore_patterns("include"))
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, closed.with_name(libraries.name))
    monkeypatch.setattr(locate, "_package", lambda: closed)
    monkeypatch.setattr(locate, "_SHARED", open_folder / "cache")
    account = account_for(open_folder / "new")
    programs = locate.programs_for(account)
    assert programs.is_relative_to(open_folder)
    assert (
        subprocess.run(
            [programs / "postgres", "--version"], **account.identity(), check=True, cwd="/"
        ).returncode
        == 0
    )
    made = programs.stat().st_ino
    assert locate.programs_for(account).stat().st_ino == made
    assert [path.name for path in (open_folder / "cache").iterdir()] == [programs.parents[2].name]
    programs.parents[2].chmod(0o777)
    with pytest.raises(DatabaseUnavailable, match="can be written by others"):
        locate.programs_for(account)


@pytest.mark.parametrize(("asked", "comes_up"), [(30, True), (1000, False)])
async def test_a_long_recovery_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: int, comes_up: bool
) -> None:
    answers = iter([starting.Answer.LATER] * asked + [starting.Answer.READY])

    async def ask(_: object) -> starting.Answer:
        return next(answers)

    async def two_seconds(self: starting.Pause) -> None:
        self._start -= 2

    monkeypatch.setattr(starting, "_ask", ask)
    monkeypatch.setattr(starting.Pause, "wait", two_seconds)
    said: list[str] = []
    places = Places(tmp_path)
    places.folder.mkdir()
    if comes_up:
        await starting.ensure_running(places, said.append)
    else:
        with pytest.raises(DatabaseUnavailable, match="does not answer"):
            await starting.ensure_running(places, said.append)
    assert set(said) == {"the database is recovering"}


async def test_finding_and_giving_do_not_hold_up_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both may walk, copy and wait for a process."""
    threads = []

    def found(_: Account) -> Path:
        threads.append(threading.current_thread())
        return tmp_path / "nowhere"

    monkeypatch.setattr(starting, "programs_for", found)
    monkeypatch.setattr(starting, "give", lambda *_: threads.append(threading.current_thread()))
    with pytest.raises(DatabaseUnavailable):
        await starting.ensure_cluster(Places(tmp_path), lambda _: None)
    Places(tmp_path).folder.mkdir(mode=0o700)
    with pytest.raises(DatabaseUnavailable):
        await starting.ensure_running(Places(tmp_path), lambda _: None)
    assert len(threads) == 3
    assert threading.main_thread() not in threads


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "_PACKAGE", "no_such_package_at_all")
    with pytest.raises(DatabaseUnavailable, match="not installed"):
        locate.programs_for(Account(os.geteuid(), os.getegid(), borrowed=False))


def test_the_layer_is_imported_without_the_driver() -> None:
    code = "import sys, engine.database; assert not {'psycopg', 'psycopg_pool', 'psutil'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
