"""Each state of the embedded server's folder that needs no server: its sentence, its remedy, its mend.

The folder looks like a data folder, but none can be served from it: `control` stands in for what
PostgreSQL says of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.database.embedded import socketpath
from engine.database.embedded.account import account_for
from engine.database.embedded.control import Control
from engine.database.embedded.places import Places
from engine.database.model import silent
from engine.doctor import State
from engine.doctor.server import server_findings
from tests.support import NOBODY, as_nobody
from tests.unit.looking import finding, findings

if TYPE_CHECKING:
    from collections.abc import Callable


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change an owner")


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
async def test_looking_makes_no_file_and_needs_none(places: Places) -> None:
    assert (await finding(places)).check.state is State.OK
    assert [path.name for path in places.data.iterdir()] == ["postgres"]
