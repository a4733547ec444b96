"""A folder of notes and its index, as tests handle them: write, index, and look into the tables."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.models.embedding.bundled import BundledEmbedder
from engine.notes import jobs
from engine.notes.jobs import Claimed, Wanted
from engine.notes.model import Folder, JobKind, JobStatus, Mode
from engine.text.ranking import POSTING
from engine.text.tokens import terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from engine.database import Database
    from engine.notes import Notes
    from engine.notes.model import Job, SearchResult
    from engine.settings import Settings


class AttentiveEmbedder(BundledEmbedder):
    """The real model, which remembers the passages it was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return await super().passages(texts)


@dataclass
class Vault:
    """The notes under `root`, and what the index makes of them."""

    database: Database
    notes: Notes
    settings: Settings
    folder: Folder

    @property
    def root(self) -> Path:
        return self.folder.path

    # The disk

    def write(self, path: str, text: str | bytes, mtime: float | None = None) -> Path:
        """Write a note; `mtime` (seconds since the epoch) makes it older than it is."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        if mtime is not None:
            os.utime(file, (mtime, mtime))
        return file

    def on_disk(self) -> dict[str, bytes]:
        """sha256 of every Markdown file whose name is UTF-8, walked without the code under test."""
        found = {}
        for parent, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                if any(0xDC80 <= ord(letter) <= 0xDCFF for letter in name):
                    continue
                if name.endswith((".md", ".markdown")) and not name.startswith("."):
                    file = os.path.join(parent, name)  # noqa: PTH118 - as os.walk gives it
                    with open(file, "rb") as opened:  # noqa: PTH123
                        found[os.path.relpath(file, self.root)] = hashlib.sha256(opened.read()).digest()
        return found

    # Work

    async def index(self, *, embed: bool = False) -> None:
        """Survey, and work everything off."""
        await self.notes.index_all()
        await self.notes.work_until_idle(embed=embed)

    async def save(self, path: str, text: str | bytes, *, embed: bool = False) -> None:
        """Write one note and index it, as a save that is noticed."""
        await self.notes.ingest(self.write(path, text))
        await self.notes.work_until_idle(embed=embed)

    async def found(self, query: str, **options: Any) -> list[str]:
        """Paths of the notes found by keyword, best first."""
        result: SearchResult = await self.notes.search(query, **{"mode": Mode.KEYWORD, "k": 20, **options})
        return [citation.path for citation in result.citations]

    # The queue

    async def enqueue(self, *paths: str, **options: Any) -> int:
        """Queue looks at paths, the first the oldest."""
        wanted = [Wanted(JobKind.INGEST_PATH, path, order) for order, path in enumerate(paths)]
        async with self.database.transaction() as connection:
            return await jobs.enqueue(connection, self.folder.id, wanted, **options)

    async def claim(self, worker: str = "w", limit: int = 100, lease: float = 60) -> list[Claimed]:
        async with self.database.connection() as connection:
            return await jobs.claim(connection, worker, limit=limit, lease=lease)

    async def lapse(self) -> int:
        """Let every lease end now, and reclaim."""
        await self.rows("UPDATE job SET lease_until = now() - interval '1 s' WHERE status = 'processing'")
        async with self.database.connection() as connection:
            return await jobs.reclaim_lapsed(connection)

    async def jobs(self, status: JobStatus | None = None) -> list[Job]:
        return await self.notes.jobs(status=status, limit=10_000)

    async def failures(self) -> dict[str, str]:
        """Error by path of the failed jobs."""
        return {job.path: job.error or "" for job in await self.jobs(JobStatus.FAILED)}

    # The tables

    async def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        async with self.database.connection() as connection:
            cursor = await connection.execute(statement.encode(), values or None)
            return await cursor.fetchall() if cursor.description else []

    async def value(self, statement: str, *values: object) -> Any:
        return (await self.rows(statement, *values))[0][0]

    async def in_index(self) -> dict[str, bytes]:
        """sha256 of every file the index has."""
        return dict(await self.rows("SELECT path, hash FROM file WHERE folder = %s", self.folder.id))

    async def passages(self) -> dict[str, int]:
        """Id by text of the passages some file holds."""
        return dict(await self.rows("SELECT text, id FROM passage WHERE orphaned_at IS NULL"))

    async def check(self) -> None:
        """What must hold between the tables whenever no transaction is open."""
        placed = {row[0] for row in await self.rows("SELECT DISTINCT passage FROM chunk")}
        known = await self.rows("SELECT id, text, length, orphaned_at IS NULL, heading FROM passage")
        assert placed == {row[0] for row in known if row[3]}, "a passage is live exactly where a chunk is"
        posted: dict[int, set[str]] = {row[0]: set() for row in known}
        for term, data in await self.rows("SELECT term, data FROM posting"):
            for passage in np.frombuffer(data, POSTING)["passage"].tolist():
                assert passage in posted, f"a posting of {term!r} points to a passage that is gone"
                assert term not in posted[passage], f"{term!r} is posted twice"
                posted[passage].add(term)
        assert posted == {row[0]: set(terms(row[1]) + terms(row[4])) for row in known}
        words = [row[2] for row in known if row[2]]
        counted = await self.rows("SELECT coalesce(sum(passages), 0), coalesce(sum(length), 0) FROM segment")
        assert counted == [(len(words), sum(words))]
        wanted = {row[0] for row in await self.rows("SELECT passage FROM embedding")}
        assert placed <= wanted, "every live passage has a vector, or waits for one"
