"""The examination tells each part by its name, and how changes are really noticed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine import Engine
from engine.database.embedded.flock import FileLock
from engine.database.model import silent
from engine.doctor import State, examine, server
from engine.doctor.check import Check, Finding
from engine.doctor.opened import open_and_look
from engine.doctor.watching import watching_checks
from engine.errors import (
    DatabaseRefused,
    DatabaseUnavailable,
    FolderError,
    ModelError,
    NoctuaryError,
    SettingsError,
)
from engine.notes import watcher
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def plain(environment: Mapping[str, str], tmp_path: Path) -> Settings:
    """Settings that need no database."""
    return Settings.load(environment, cwd=tmp_path)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (DatabaseRefused("It is too old."), "database"),
        (ModelError("The file is not what it says."), "model"),
        (SettingsError("There is no such provider."), "settings"),
        (FolderError("It is gone."), "folder"),
    ],
)
async def test_what_keeps_the_engine_from_opening_is_told_of_the_part_it_belongs_to(
    plain: Settings, monkeypatch: pytest.MonkeyPatch, error: NoctuaryError, name: str
) -> None:
    async def refused(*_: object, **__: object) -> Engine:
        raise error

    monkeypatch.setattr(Engine, "open", refused)
    opened = await open_and_look(plain, silent)
    failed, skipped = opened.checks
    assert opened.model is None, "the model is tried by itself"
    assert (failed.name, failed.state, failed.sentence) == (name, State.FAIL, error.message)
    assert f"it needs the {name}" in skipped.sentence


@pytest.mark.parametrize(
    ("watch", "said"), [("auto", "by polling every"), ("events", "by events, as"), ("polling", "By polling")]
)
def test_a_network_file_system_is_not_said_to_be_watched_by_events(
    plain: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, watch: str, said: str
) -> None:
    away, near = tmp_path / "away", tmp_path / "near"
    monkeypatch.setattr(watcher, "remote_kind", lambda path: "nfs4" if path == away else "")
    checks = list(watching_checks(replace(plain, watch=watch, poll_interval=7.0), [away]))
    assert said in checks[0].sentence
    assert ("nfs4" in checks[0].sentence) is (watch != "polling")
    assert (len(checks) == 1) is (watch != "events")
    both = list(watching_checks(replace(plain, watch="auto"), [away, near]))
    assert ["nfs4" in check.sentence for check in both] == [True, False]
    assert both[1].sentence.startswith("By events")


WRONG = Check("part", State.FAIL, "It is wrong.", "Mend it.", left="It is somebody's.")


async def test_a_mended_check_is_ok_and_tells_both_what_was_found_and_what_was_done() -> None:
    async def mend() -> str:
        return "It was mended."

    mended = await Finding(WRONG, blocks=True, mend=mend).mended()
    assert mended.check == Check("part", State.OK, "It is wrong.", fixed="It was mended.")
    assert not mended.blocks


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(1, "Operation not permitted"), "The system refused: "),
        (DatabaseUnavailable("It came into use."), "It came into use."),
    ],
)
async def test_a_mend_that_fails_leaves_the_check_as_it_was_and_tells_why(
    error: Exception, told: str
) -> None:
    async def mend() -> str:
        raise error

    left = await Finding(WRONG, blocks=True, mend=mend).mended()
    assert (left.check.state, left.check.remedy, left.blocks) == (State.FAIL, "Mend it.", True)
    assert left.check.left.startswith(told)
    assert left.mend is None, "it is not tried again"


def test_what_opening_mends_is_told_as_mended_only_when_it_opened() -> None:
    finding = Finding(replace(WRONG, left=""), opening="It recovered.")
    assert finding.after_opening(opened=True).fixed == "It recovered."
    closed = finding.after_opening(opened=False)
    assert (closed.state, closed.fixed) == (State.FAIL, "")
    assert closed.left


@pytest.fixture
def here(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """An installation of its own that this process takes its settings from."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return Settings.load(cwd=tmp_path)


async def test_what_takes_long_is_told_once_and_that_it_is_over(
    here: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BUSY_SECONDS", 0.5)
    monkeypatch.setattr(server, "_PAUSE", 0.01)
    lock = FileLock(here.paths.data / "postgres.lock")
    assert lock.try_exclusive()
    told: list[str] = []
    async with asyncio.timeout(30):
        checks = await examine(on_state=told.append)
    lock.release()
    assert told == ["waiting for another process to start or stop the database", ""]
    assert [check.name for check in checks if "Not tried: it needs the server" in check.sentence]


@pytest.mark.parametrize("fix", [False, True])
@pytest.mark.usefixtures("here")
async def test_only_fix_tells_why_something_was_left(monkeypatch: pytest.MonkeyPatch, fix: bool) -> None:
    monkeypatch.setenv("NOCTUARY_EDITOR", "no-such-editor")
    monkeypatch.setenv("NOCTUARY_DATABASE_URL", "postgresql://u@127.0.0.1:1/none")
    checks = await examine(fix=fix)
    wrong = {check.name: check for check in checks if check.state is not State.OK}
    assert {"editor", "database"} <= set(wrong)
    assert bool(wrong["editor"].left) is fix
    assert bool(wrong["database"].left) is fix
    assert not any(check.left for check in checks if check.state is State.OK)
