"""What the doctor says of a server that lives, or that another process is at work on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from engine.database.embedded import mending
from engine.database.embedded.flock import FileLock
from engine.database.model import silent
from engine.doctor import State, server
from engine.errors import DatabaseUnavailable
from tests.unit.looking import finding

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database.embedded.places import Places


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
