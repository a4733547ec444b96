"""Each state of the embedded server's folder that needs no server: its sentence, its remedy, its mend.

The folder looks like a data folder, but none can be served from it: `control` stands in for what
PostgreSQL says of it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.database.embedded import condition, mending, socketpath
from engine.database.embedded.account import account_for
from engine.database.embedded.control import Control
from engine.database.embedded.flock import FileLock
from engine.database.embedded.locate import MAJOR
from engine.database.embedded.places import Places
from engine.database.model import silent
from engine.doctor import State, server
from engine.doctor.server import server_findings
from engine.errors import DatabaseUnavailable
from tests.support import NOBODY, as_nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.doctor.check import Finding

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change an owner")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A data folder of the program with what looks like a database in it."""
    places = Places(tmp_path / "noctuary")
    places.folder.mkdir(parents=True, mode=0o700)
    (places.folder / "PG_VERSION").write_text(f"{MAJOR}\n")
    return places


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Callable[[Control | None], None]:
    """Decides what the control file says; at first that all is well."""

    def says(told: Control | None) -> None:
        monkeypatch.setattr(condition, "read_control", lambda *_: told)

    says(Control(orderly=True))
    return says


@pytest.fixture
def postgres(places: Places, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that passes for the server of the folder, with its socket and its number in the file."""
    program = tmp_path / "postgres"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    process = subprocess.Popen(["postgres", "600"], executable=program, cwd=places.folder)
    (places.folder / "postmaster.pid").write_text(f"{process.pid}\n{places.folder}\n")
    (places.folder / ".s.PGSQL.5432").touch()
    yield process
    process.kill()
    process.wait()


def everything(places: Places) -> dict[Path, tuple[int, int, int, bytes]]:
    """All that lies in the data folder, to see that nothing was changed."""
    found = {}
    for path in places.data.parent.rglob("*"):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[path] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


async def findings(places: Places) -> list[Finding]:
    """What is found; looking changes nothing."""
    before = everything(places)
    found = await server_findings(places, silent)
    assert everything(places) == before
    return found


async def finding(places: Places) -> Finding:
    (found,) = await findings(places)
    return found


async def test_a_server_at_rest(places: Places, control: Callable[[Control | None], None]) -> None:
    found = await finding(places)
    assert (found.check.state, found.blocks) == (State.OK, False)
    assert found.check.sentence == "It does not run; it was shut down in order."
    control(None)
    assert (await finding(places)).check.sentence == "It does not run."


async def test_no_database_yet(tmp_path: Path) -> None:
    found = await finding(Places(tmp_path))
    assert (found.check.state, found.blocks) == (State.OK, False)
    assert "the first start makes it" in found.check.sentence


async def test_a_crash(places: Places, control: Callable[[Control | None], None]) -> None:
    control(Control(orderly=False))
    (places.folder / "postmaster.pid").write_text("999999999\n/there\n")  # as every crash leaves it
    found = await finding(places)
    assert found.check.state is State.WARN
    assert "not shut down in order" in found.check.sentence
    assert "recovers at the next start" in found.check.remedy
    assert "recovered at this start" in found.opening
    assert found.mend is None
    assert not found.blocks


async def test_a_damaged_control_file(places: Places) -> None:
    account = account_for(places.folder)
    os.chown(places.folder, account.uid, account.gid)
    found = await finding(places)
    assert (found.check.state, found.blocks, found.mend) == (State.FAIL, True, None)
    assert "cannot be relied on: could not open file" in found.check.sentence
    assert found.check.remedy
    assert found.check.left
    (places.folder / "global").mkdir()
    (places.folder / "global" / "pg_control").write_bytes(b"torn")
    assert "could not read file" in (await finding(places)).check.sentence
    (places.folder / "global" / "pg_control").write_bytes(bytes(8192))
    assert "checksum" in (await finding(places)).check.sentence


@pytest.mark.parametrize("name", ["postmaster.pid", ".s.PGSQL.5432.lock"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty or torn"),
        ("12", "is empty or torn"),
        ("x\n", "is empty or torn"),
        ("-1\n/there\n", "is empty or torn"),
        ("9" * 5000 + "\n", "is empty or torn"),
        ("999999999\n/there\n", "names process 999999999, which is gone"),
        ("{mine}\n/there\n", "which is another program's ("),
    ],
)
@pytest.mark.usefixtures("control")
async def test_a_lock_file_that_no_server_owns(places: Places, name: str, text: str, said: str) -> None:
    (places.folder / name).write_text(text.format(mine=os.getpid()))
    found = await finding(places)
    assert found.check.state is State.WARN
    assert found.check.sentence.startswith(f"{name} ")
    assert said in found.check.sentence
    assert f"{name}.stale" in found.opening
    assert not found.blocks


@pytest.mark.usefixtures("control")
async def test_a_process_that_ended_and_was_not_reaped_is_no_other_program(places: Places) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    (places.folder / "postmaster.pid").write_text(f"{process.pid}\n/there\n")
    found = await finding(places)
    process.wait()
    assert "which is gone" in found.check.sentence


@pytest.mark.usefixtures("control")
async def test_a_first_start_that_was_interrupted(places: Places) -> None:
    (places.unfinished / "base").mkdir(parents=True)
    found = await finding(places)
    assert found.check.state is State.WARN
    assert str(places.unfinished) in found.check.sentence
    assert found.opening == "", "no start looks at it while there is a database"
    mended = (await found.mended()).check
    assert mended.state is State.OK
    assert (places.data / "postgres.new.stale" / "base").is_dir()
    quiet = await findings(places)
    assert [each.check.state for each in quiet] == [State.OK] * 2
    assert "postgres.new.stale" in quiet[1].check.sentence


async def test_a_first_start_that_was_interrupted_and_never_came_to_an_end(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.unfinished.mkdir()
    found = await finding(places)
    assert "put aside" in found.opening
    assert not found.blocks


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o500])
@pytest.mark.usefixtures("control")
async def test_wrong_permissions(places: Places, mode: int) -> None:
    above = {parent: parent.stat().st_mode for parent in places.folder.parents}
    places.folder.chmod(mode)
    found = await findings(places)
    wrong = found[-1]
    assert (wrong.check.state, wrong.blocks) == (State.FAIL, True)
    assert f"{mode:04o}" in wrong.check.sentence
    assert "--fix" in wrong.check.remedy
    mended = (await wrong.mended()).check
    assert mended.state is State.OK
    assert places.folder.stat().st_mode & 0o777 == 0o700
    assert {parent: parent.stat().st_mode for parent in places.folder.parents} == above
    assert (await finding(places)).check.state is State.OK


@pytest.mark.usefixtures("control", "postgres")
async def test_wrong_permissions_below_a_server_that_runs(places: Places) -> None:
    user = FileLock(places.users)
    assert user.try_shared()
    places.folder.chmod(0o755)
    found = await finding(places)
    user.release()
    assert found.check.state is State.FAIL
    assert found.mend
    assert not found.blocks, "only a start would fail"


@AS_ROOT
@pytest.mark.usefixtures("control")
async def test_a_data_folder_that_its_owner_cannot_even_read(places: Places) -> None:
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    home.chmod(0o755)
    own = Places(places.data.rename(home / "noctuary"))
    for path in (own.data, own.folder):
        os.chown(path, NOBODY, NOBODY)
    own.folder.chmod(0o000)
    try:
        with as_nobody():
            (found,) = await server_findings(own, silent)
            assert "are 0000" in found.check.sentence
            assert (await found.mended()).check.state is State.OK
            (found,) = await server_findings(own, silent)
            assert found.check.sentence.startswith("It does not run")
    finally:
        shutil.rmtree(home)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "PG_VERSION").write_text("17\n"), "is of PostgreSQL 17"),
        (lambda folder: (folder / "PG_VERSION").write_text(""), "PG_VERSION"),
        (
            lambda folder: (folder / "PG_VERSION").rename(folder / "notes.md"),
            "holds files, but no database",
        ),
        (lambda folder: (shutil.rmtree(folder), folder.write_text("mine")), "cannot be used"),
    ],
    ids=["version", "no version", "no database", "a file"],
)
async def test_what_is_not_ours_to_start_is_named_and_never_mended(
    places: Places, spoil: Callable[[Path], object], said: str
) -> None:
    spoil(places.folder)
    found = await finding(places)
    assert (found.check.state, found.blocks, found.mend) == (State.FAIL, True, None)
    assert said in found.check.sentence
    assert found.check.remedy
    assert found.check.left


async def test_a_folder_for_sockets_that_others_prepared(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where a path is too long for a socket and no descriptor can stand in for it."""
    private = tmp_path / f"noctuary-{os.geteuid()}"
    private.mkdir()
    private.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(socketpath, "fits", lambda _: False)
    monkeypatch.setattr(socketpath, "_DESCRIPTORS", tmp_path / "none")
    found = await finding(places)
    assert (found.check.state, found.blocks, found.mend) == (State.FAIL, True, None)
    assert "not a folder of yours alone" in found.check.sentence
    private.chmod(0o700)
    assert "not a folder" not in (await finding(places)).check.sentence


@AS_ROOT
async def test_a_data_folder_of_somebody_else(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(places.folder, 12345, 12345)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    found = await finding(places)
    assert (found.check.state, found.blocks, found.mend) == (State.FAIL, True, None)
    assert "belongs to another user (uid 12345)" in found.check.sentence


@pytest.mark.usefixtures("control")
async def test_a_lock_file_that_is_none_is_told(places: Places) -> None:
    places.lock.mkdir()
    found = await finding(places)
    assert (found.check.state, found.blocks) == (State.FAIL, True)
    assert "postgres.lock" in found.check.sentence


@pytest.mark.usefixtures("control")
async def test_another_process_at_work_is_waited_for_and_then_named(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BUSY_SECONDS", 0.0)
    lock = FileLock(places.lock)
    assert lock.try_exclusive()
    found = await finding(places)
    assert (found.check.state, found.blocks, found.mend) == (State.WARN, True, None)
    assert "starting or stopping" in found.check.sentence
    assert str(places.lock) in found.check.remedy
    places.unfinished.mkdir()
    with pytest.raises(DatabaseUnavailable, match="Another process"):
        mending.put_unfinished_aside(places)
    with pytest.raises(DatabaseUnavailable, match="Another process"):
        await mending.stop_unused(places, silent)
    lock.release()


@pytest.mark.usefixtures("control", "postgres")
async def test_a_server_in_use(places: Places) -> None:
    user = FileLock(places.users)
    assert user.try_shared()
    found = await finding(places)
    assert found.check.state is State.OK
    assert found.check.sentence.endswith("and is in use.")
    with pytest.raises(DatabaseUnavailable, match="came into use"):
        await mending.stop_unused(places, silent)
    user.release()


@pytest.mark.usefixtures("control")
async def test_a_server_that_nobody_uses(places: Places, postgres: subprocess.Popen[bytes]) -> None:
    found = await finding(places)
    assert found.check.state is State.WARN
    assert f"process {postgres.pid}" in found.check.sentence
    assert "nobody uses it" in found.check.sentence
    assert not found.blocks
    assert found.opening
    assert found.mend


@pytest.mark.usefixtures("control")
async def test_a_server_that_is_suspended_is_not_touched(
    places: Places, postgres: subprocess.Popen[bytes]
) -> None:
    postgres.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, postgres.pid, os.WSTOPPED | os.WNOWAIT)
    found = await finding(places)
    assert (found.check.state, found.blocks, found.mend) == (State.FAIL, True, None)
    assert "suspended" in found.check.sentence
    assert f"kill -CONT {postgres.pid}" in found.check.remedy


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.usefixtures("control", "postgres")
async def test_a_server_without_its_socket_is_stopped_only_if_nobody_uses_it(
    places: Places, used: bool
) -> None:
    (places.folder / ".s.PGSQL.5432").unlink()
    user = FileLock(places.users)
    assert not used or user.try_shared()
    found = await finding(places)
    user.release()
    assert (found.check.state, found.blocks) == (State.FAIL, True)
    assert "its socket is gone" in found.check.sentence
    assert bool(found.mend) is not used
    assert bool(found.check.left) is used


@pytest.mark.parametrize("text", ["", "1\n/there\n"])
@pytest.mark.usefixtures("control")
async def test_a_server_that_its_file_does_not_name_is_found_and_let_be(
    places: Places, postgres: subprocess.Popen[bytes], text: str
) -> None:
    (places.folder / "postmaster.pid").write_text(text)
    serving = FileLock(places.serving)  # every process of a real one holds it
    assert serving.try_exclusive()
    found = await finding(places)
    serving.release()
    assert (found.check.state, found.mend) == (State.WARN, None)
    assert f"process {postgres.pid}" in found.check.sentence
    assert "is not named by postmaster.pid" in found.check.sentence


@pytest.mark.usefixtures("control")
async def test_a_server_whose_first_process_is_gone(places: Places, tmp_path: Path) -> None:
    serving = FileLock(places.serving)
    assert serving.try_exclusive()
    program = tmp_path / "postgres"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    called = ["postgres: noctuary: checkpointer", "600"]
    with subprocess.Popen(called, executable=program, cwd=places.folder) as another:
        found = await finding(places)
        another.kill()
    serving.release()
    assert found.check.state is State.WARN
    assert "the others are ending" in found.check.sentence
    assert "recovered at this start" in found.opening
    assert not found.blocks


@pytest.mark.usefixtures("control")
async def test_looking_makes_no_file_and_needs_none(places: Places) -> None:
    assert (await finding(places)).check.state is State.OK
    assert [path.name for path in places.data.iterdir()] == ["postgres"]
