"""What the benchmarks share: a real installation of its own, filled with the Windows driver documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from figures import fresh, unpack

from engine import Engine
from engine.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass(frozen=True)
class Installation:
    """Folders of its own, as a new user has, and the notes."""

    settings: Settings
    environment: dict[str, str]
    notes: Path


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A fresh set of folders with the 14,388 files unpacked beside them."""
    base = tmp_path_factory.mktemp("benchmark")
    environment = fresh(base)
    notes = unpack("corpora/windows-driver-docs.tar.gz", base / "notes")
    return Installation(Settings.load(environment, cwd=base), environment, notes)


@pytest.fixture(scope="session")
def indexed(installation: Installation) -> Installation:
    """The same with every word indexed, and no vector yet."""
    import asyncio

    async def index() -> None:
        engine = await Engine.open(installation.settings, application="benchmark")
        try:
            await engine.notes.add_folder(installation.notes)
            await engine.notes.index_all()
            await engine.notes.work_until_idle(embed=False)
        finally:
            await engine.close()

    asyncio.run(index())
    return installation


@pytest.fixture
async def engine(indexed: Installation) -> AsyncIterator[Engine]:
    """An open engine on the indexed notes, without background work."""
    opened = await Engine.open(indexed.settings, application="benchmark")
    yield opened
    await opened.close()


@pytest.fixture
async def empty_engine(tmp_path: Path) -> AsyncIterator[Engine]:
    """An engine of its own, with no notes and no background work."""
    opened = await Engine.open(Settings.load(fresh(tmp_path), cwd=tmp_path), application="benchmark")
    yield opened
    await opened.close()
