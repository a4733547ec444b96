"""The disk with the database fills up while notes are indexed: said so, nothing broken, and it goes on by itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.database import opening
from engine.database.embedded import tuning
from engine.doors import exits
from tests.faults.mounts import may_mount, mounted  # noqa: F401 - a fixture
from tests.faults.test_server_death import AGAIN_WITHIN, opened
from tests.faults.truth import settle
from tests.integration.doctoring import Doctor
from tests.support import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from tests.integration.line import Line

SIZE = 160
TEXT = "\n\n".join(
    f"## Part {part}\n\n" + " ".join(f"w{part}x{word}" for word in range(60)) for part in range(12)
)


def fill(folder: Path) -> Path:
    """A file that takes all the room there is."""
    file = folder / "ballast"
    with file.open("wb", buffering=0) as stream:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    stream.write(bytes(size))
            except OSError:
                continue
    return file


@pytest.mark.usefixtures("may_mount")
async def test_a_full_disk_is_told_and_indexing_goes_on_when_there_is_room(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_CHECKOUT_SECONDS", 1.0)
    arguments = tuning.arguments()
    monkeypatch.setattr(
        tuning, "arguments", lambda: [*arguments, "-c", "max_wal_size=32MB", "-c", "min_wal_size=32MB"]
    )
    disk = tmp_path / "xdg" / "data"
    with mounted(disk, "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs"):
        async with opened(environment, tmp_path / "notes") as (engine, vault):
            vault.write("before.md", "owls\n")
            await settle(vault)
            ballast = fill(disk)
            for number in range(400):
                vault.write(f"{number % 9}/{number}.md", f"number{number}\n\n{TEXT}\n")
            reason = await eventually(lambda: _told(engine))
            assert "Traceback" not in reason
            assert "\n" not in reason
            ballast.unlink()
            async with asyncio.timeout(2 * AGAIN_WITHIN):
                await eventually(lambda: _indexed(engine, 401), AGAIN_WITHIN)
            await settle(vault, AGAIN_WITHIN)
            assert await vault.failures() == {}, "no note is to blame for a full disk"
            assert await vault.found("number399") == ["3/399.md"]
            await eventually(lambda: not engine.faults)


@pytest.mark.usefixtures("may_mount")
def test_the_doctor_names_a_full_disk_and_makes_no_room_by_itself(
    installation: Line, environment: dict[str, str], tmp_path: Path
) -> None:
    disk = tmp_path / "xdg" / "data"
    with mounted(disk, "-t", "tmpfs", "-o", f"size={SIZE}m", "tmpfs"):
        installation.index()
        doctor = Doctor(installation, environment, disk / "noctuary")
        doctor.well()
        ballast = fill(disk)
        before = set(doctor.content())
        for arguments in ((), ("--fix",)):
            said = installation("doctor", "--json", *arguments)
            assert said.status == exits.ERROR
            failed = {check["name"]: check for check in said.json["checks"] if check["state"] == "fail"}
            assert set(failed) == {"data folder", "database"}
            assert f"The disk of {disk / 'noctuary'} is full" in failed["data folder"]["sentence"]
            assert "No space left" in failed["database"]["sentence"]
            assert failed["data folder"]["remedy"].startswith("Free some space.")
            assert bool(failed["data folder"]["left"]) is bool(arguments)
            assert set(doctor.content()) >= before
        ballast.unlink()
        doctor()
        doctor.well()


def _told(engine: Engine) -> str:
    """The sentence a person sees."""
    return next((reason for reason in engine.faults.values() if reason), "")


async def _indexed(engine: Engine, files: int) -> bool:
    from tests.faults.test_server_death import AWAY

    try:
        index = (await engine.notes.status()).index
    except AWAY:
        return False
    return index is not None and index.files == files
