"""A folder that passes for the embedded server's, without a server."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from engine.database.embedded import condition
from engine.database.embedded.control import Control
from engine.database.embedded.locate import MAJOR
from engine.database.embedded.places import Places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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
