"""The examination tells each part by its name, and how changes are really noticed."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine import Engine, doctor
from engine.doctor import State
from engine.errors import DatabaseRefused, FolderError, ModelError, NoctuaryError, SettingsError
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
    (failed, skipped), model = await doctor._engine(plain)
    assert model is None, "the model is tried by itself"
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
    checks = list(doctor._watching(replace(plain, watch=watch, poll_interval=7.0), [away]))
    assert said in checks[0].sentence
    assert ("nfs4" in checks[0].sentence) is (watch != "polling")
    assert (len(checks) == 1) is (watch != "events")
    both = list(doctor._watching(replace(plain, watch="auto"), [away, near]))
    assert ["nfs4" in check.sentence for check in both] == [True, False]
    assert both[1].sentence.startswith("By events")


@pytest.mark.parametrize("part", ["data", "state"])
def test_a_folder_of_ours_that_cannot_be_used_is_named_with_what_to_do(
    plain: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    look = {"data": doctor._disk, "state": doctor._state}[part]
    assert look(plain).state is State.OK
    folder = tmp_path / "xdg" / part / "noctuary"
    refused = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: path != folder and refused(path, mode)
    )  # who runs the tests may be root, to whom nothing is read-only
    found = look(plain)
    assert (found.name, found.state) == (f"{part} folder", State.FAIL)
    assert str(folder) in found.sentence
    assert f"XDG_{part.upper()}_HOME" in found.remedy


@pytest.mark.parametrize("part", ["data", "state"])
def test_a_file_in_place_of_a_folder_of_ours_is_named(
    environment: dict[str, str], tmp_path: Path, part: str
) -> None:
    (tmp_path / "xdg").mkdir()
    (tmp_path / "xdg" / part).write_text("in the way")
    settings = Settings.load(environment, cwd=tmp_path)
    found = {"data": doctor._disk, "state": doctor._state}[part](settings)
    assert (found.name, found.state) == (f"{part} folder", State.FAIL)
    assert f"xdg/{part}/noctuary cannot be made" in found.sentence
    assert found.remedy


def test_a_log_that_cannot_be_written_is_named(plain: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    log = plain.paths.state / "noctuary.log"
    log.touch()
    refused = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != log and refused(path, mode))
    found = doctor._state(plain)
    assert found.state is State.FAIL
    assert found.sentence == f"{log} cannot be written."
