"""Starting the services: a folder that cannot be added keeps nothing else from running."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import psycopg
import pytest

import engine
from engine import Engine
from engine.errors import DatabaseUnavailable
from engine.notes import Notes
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.settings import Settings


@pytest.fixture
async def opened(settings: Settings, tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine whose settings name four folders, of which the first is fine."""
    for name in ("notes/inner", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "note.md").write_text("The heron waits.\n")
    names = ("notes", "notes/inner", "unmounted", "other")
    held = await Engine.open(replace(settings, corpus_path=tuple(tmp_path / name for name in names)))
    yield held
    await held.close()


async def test_every_folder_is_tried_and_the_services_start_whatever_became_of_it(opened: Engine) -> None:
    errors = await opened.start(embed=False)
    assert ["overlaps" in str(errors[0]), "does not exist" in str(errors[1])] == [True, True]
    assert len(errors) == 2
    await eventually(lambda: _indexed(opened, 2))
    assert [record.text for record in opened.log.records() if record.level == "error"] == [
        str(error) for error in errors
    ]


async def test_folders_are_added_later_when_the_database_is_away(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, tries = Notes.add_folder, []

    async def faltering(notes: Notes, path: Path) -> object:
        tries.append(path.name)
        if len(tries) < 4:
            raise DatabaseUnavailable("It does not answer.")
        return await add(notes, path)

    monkeypatch.setattr(Notes, "add_folder", faltering)
    monkeypatch.setattr(engine, "ADD_AGAIN_SECONDS", 0.01)
    assert [str(error) for error in await opened.start(embed=False)] == ["It does not answer."]
    await eventually(lambda: _indexed(opened, 2))
    assert tries == ["notes"] * 4 + ["inner", "unmounted", "other"]


async def test_an_error_of_the_server_itself_is_one_folders_error(
    opened: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Notes.add_folder

    async def full(notes: Notes, path: Path) -> object:
        if path.name == "notes":
            raise psycopg.errors.DiskFull("could not extend file")
        return await add(notes, path)

    monkeypatch.setattr(Notes, "add_folder", full)
    errors = await opened.start(embed=False)
    assert "could not extend file" in str(errors[0])
    await eventually(lambda: _indexed(opened, 2))


async def _indexed(opened: Engine, files: int) -> bool:
    index = (await opened.notes.status()).index
    return index is not None and index.files == files
