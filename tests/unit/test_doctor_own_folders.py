"""The folders and files of the installation: what is wrong with them, and what may be put right."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import engine.database.embedded.cluster  # noqa: F401 - before root's rights are gone
from engine.activity import LOG_FILE
from engine.doctor import State, own_folders
from engine.doctor.own_folders import STATE_FILES, own_folder_findings
from engine.notes import watcher
from engine.settings import Settings
from tests.support import NOBODY, as_nobody
from tui import themes
from tui.widgets import query_input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.doctor.check import Check, Finding

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its user")


@pytest.fixture
def plain(environment: dict[str, str], tmp_path: Path) -> Settings:
    """Settings of an installation whose folders are made."""
    settings = Settings.load(environment, cwd=tmp_path)
    assert settings.paths.data.is_dir()
    assert settings.paths.state.is_dir()
    return settings


@pytest.fixture
def ordinary(environment: dict[str, str]) -> Iterator[Settings]:
    """The same for a user without root's rights, whom this process is meanwhile."""
    home = Path(tempfile.mkdtemp(dir="/tmp"))
    home.chmod(0o755)
    for name in ("data", "state"):
        (home / name).mkdir()
        os.chown(home / name, NOBODY, NOBODY)
    mine = {**environment, "XDG_DATA_HOME": f"{home}/data", "XDG_STATE_HOME": f"{home}/state"}
    settings = Settings.load(mine, cwd=home)
    list(own_folder_findings(Settings.load(environment, cwd=home)))  # imports what only root may read
    try:
        with as_nobody():
            assert settings.paths.data.is_dir()
            assert settings.paths.state.is_dir()
            yield settings
    finally:
        shutil.rmtree(home)


def wrong(settings: Settings) -> list[Finding]:
    return [each for each in own_folder_findings(settings) if each.check.state is not State.OK]


async def mended(settings: Settings) -> Check:
    """The one finding, after its mend; nothing is wrong any more."""
    (finding,) = wrong(settings)
    check = (await finding.mended()).check
    assert wrong(settings) == []
    assert check.state is State.OK
    return check


def test_the_names_of_the_consoles_files_are_the_consoles() -> None:
    assert {LOG_FILE, query_input.FILE, themes.FILE} < set(STATE_FILES)


def test_healthy_folders_are_told_with_room_and_log(plain: Settings) -> None:
    data, state = (each.check for each in own_folder_findings(plain))
    assert (data.name, data.state, data.fixed) == ("data folder", State.OK, "")
    assert (state.name, state.state, state.fixed) == ("state folder", State.OK, "")
    assert " GB free." in data.sentence
    assert LOG_FILE in state.sentence


def test_missing_folders_are_made_for_the_user_alone(environment: dict[str, str], tmp_path: Path) -> None:
    settings = Settings.load(environment, cwd=tmp_path)
    checks = [each.check for each in own_folder_findings(settings)]
    assert [check.fixed for check in checks] == ["It was not there, and was made."] * 2
    for folder in (settings.paths.data_at, settings.paths.state_at):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("part", ["data", "state"])
def test_a_file_in_place_of_a_folder_of_ours_is_named(
    environment: dict[str, str], tmp_path: Path, part: str
) -> None:
    (tmp_path / "xdg").mkdir()
    (tmp_path / "xdg" / part).write_text("in the way")
    (found,) = wrong(Settings.load(environment, cwd=tmp_path))
    assert (found.check.name, found.check.state) == (f"{part} folder", State.FAIL)
    assert f"xdg/{part}/noctuary cannot be made" in found.check.sentence
    assert found.check.remedy
    assert found.mend is None


@AS_ROOT
@pytest.mark.parametrize("part", ["data", "state"])
async def test_a_folder_of_ours_without_our_rights_is_named_and_given_them(
    ordinary: Settings, part: str
) -> None:
    folder: Path = getattr(ordinary.paths, part)
    folder.chmod(0o500)
    (finding,) = wrong(ordinary)
    assert (finding.check.name, finding.check.state) == (f"{part} folder", State.FAIL)
    assert finding.check.sentence == f"{folder} cannot be written."
    assert f"XDG_{part.upper()}_HOME" in finding.check.remedy
    assert finding.blocks is (part == "data")
    assert "0700" in (await mended(ordinary)).fixed


@AS_ROOT
@pytest.mark.parametrize("part", ["data", "state"])
def test_a_folder_of_somebody_else_is_named_and_left(ordinary: Settings, part: str) -> None:
    folder: Path = getattr(ordinary.paths, part)
    os.setresuid(0, 0, 0)
    os.chown(folder, 0, 0)
    folder.chmod(0o755)
    os.setresuid(NOBODY, NOBODY, 0)
    (finding,) = wrong(ordinary)
    assert finding.check.sentence == f"{folder} cannot be written."
    assert finding.mend is None
    assert finding.check.left
    assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("part", "mode"), [("data", 0o770), ("state", 0o755), ("state", 0o702)])
async def test_a_folder_open_to_others_is_closed_and_nothing_above_it(
    plain: Settings, part: str, mode: int
) -> None:
    folder: Path = getattr(plain.paths, part)
    above = {parent: parent.stat().st_mode for parent in folder.parents}
    folder.chmod(mode)
    (finding,) = wrong(plain)
    assert finding.check.state is State.WARN
    assert ("may write" in finding.check.sentence) is bool(mode & 0o022)
    assert not finding.blocks
    await mended(plain)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {parent: parent.stat().st_mode for parent in folder.parents} == above


def test_that_others_may_list_the_data_folder_is_no_harm(plain: Settings) -> None:
    plain.paths.data.chmod(0o755)
    assert wrong(plain) == []


def test_a_folder_that_is_a_link_is_not_closed(plain: Settings, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    plain.paths.state_at.rmdir()
    plain.paths.state_at.symlink_to(shared)
    (finding,) = wrong(plain)
    assert finding.mend is None
    assert "link" in finding.check.left


@AS_ROOT
@pytest.mark.parametrize("name", STATE_FILES)
async def test_a_file_of_ours_without_our_rights_is_given_them(ordinary: Settings, name: str) -> None:
    file = ordinary.paths.state / name
    file.write_text("kept\n")
    file.chmod(0o040)
    (finding,) = wrong(ordinary)
    assert (finding.check.state, finding.check.sentence) == (State.FAIL, f"{file} cannot be written.")
    await mended(ordinary)
    assert file.stat().st_mode & 0o777 == 0o640, "no right is taken away"
    assert file.read_text() == "kept\n"


@AS_ROOT
@pytest.mark.parametrize(
    ("part", "name", "spare"),
    [
        ("state", LOG_FILE, True),
        ("state", "search_history.jsonl", True),
        ("data", "postgres.log", True),
        ("data", "postgres.users", False),
        ("data", "postgres.lock", False),
    ],
)
async def test_a_file_of_somebody_else_is_put_aside_unless_it_may_be_a_held_lock(
    ordinary: Settings, part: str, name: str, spare: bool
) -> None:
    file: Path = getattr(ordinary.paths, part) / name
    os.setresuid(0, 0, 0)
    file.write_text("root's\n")
    file.chmod(0o600)
    os.setresuid(NOBODY, NOBODY, 0)
    (finding,) = wrong(ordinary)
    assert finding.check.sentence == f"{file} cannot be written."
    if spare:
        assert f"{name}.stale" in (await mended(ordinary)).fixed
        assert file.with_name(f"{name}.stale").lstat().st_size == 7
    else:
        assert finding.mend is None
        assert finding.check.left
        assert finding.blocks
        assert file.lstat().st_size == 7


@pytest.mark.parametrize("name", ["postgres.lock", "postgres.serving"])
def test_a_file_that_only_a_read_only_disk_keeps_from_us_is_left(
    plain: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = plain.paths.data / name
    file.touch(0o600)
    refused = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != file and refused(path, mode))
    (finding,) = wrong(plain)
    assert finding.check.sentence == f"{file} cannot be written."
    assert finding.mend is None, "permissions are not what is missing"
    assert finding.check.left


@pytest.mark.parametrize(("part", "name"), [("state", LOG_FILE), ("data", "postgres.lock")])
async def test_what_is_no_file_is_put_aside_with_all_that_is_in_it(
    plain: Settings, part: str, name: str
) -> None:
    folder: Path = getattr(plain.paths, part)
    for number in range(2):
        (folder / name).mkdir()
        (folder / name / "mine").write_text(str(number))
        check = await mended(plain)
        assert check.sentence == f"{folder / name} is not an ordinary file."
    assert (folder / f"{name}.stale" / "mine").read_text() == "0"
    assert (folder / f"{name}.stale-2" / "mine").read_text() == "1"


def test_a_lock_file_that_is_a_link_is_not_followed(plain: Settings, tmp_path: Path) -> None:
    (plain.paths.data / "postgres.users").symlink_to(tmp_path / "nowhere")
    (finding,) = wrong(plain)
    assert "not an ordinary file" in finding.check.sentence


class Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    ("free", "state", "said"),
    [
        (15 * 1024**2, State.FAIL, "is full: 15 MB are free"),
        (400 * 1024**2, State.WARN, "has 0.4 GB free"),
        (600 * 1024**2, State.OK, "has 0.6 GB free"),
    ],
)
def test_little_room_is_told_before_it_is_gone(
    plain: Settings, monkeypatch: pytest.MonkeyPatch, free: int, state: State, said: str
) -> None:
    monkeypatch.setattr(own_folders.shutil, "disk_usage", lambda _: Usage(free))
    data = next(own_folder_findings(plain))
    assert (data.check.name, data.check.state) == ("data folder", state)
    assert said in data.check.sentence
    assert data.mend is None
    assert not data.blocks


def test_a_network_file_system_below_the_database_is_told(
    plain: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "remote_kind", lambda path: "nfs4" if path == plain.paths.data_at else "")
    (finding,) = wrong(plain)
    assert finding.check.state is State.WARN
    assert "nfs4" in finding.check.sentence
    assert finding.mend is None
