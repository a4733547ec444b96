"""The one invariant: after quiet the index is the disk, or the Drift report says why it is not."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import NoteError
from engine.notes.chunking import chunk, decode
from tests.support import eventually

if TYPE_CHECKING:
    from engine.notes import Notes
    from tests.integration.vault import Vault

_OPEN = "SELECT count(*) FROM job WHERE status IN ('pending', 'processing')"

_PLACES = """
    SELECT file.path, chunk.line_start, chunk.line_end FROM file LEFT JOIN chunk ON chunk.file = file.id
    ORDER BY file.path, chunk.position
"""


def truth(root: Path) -> dict[str, bytes]:
    """sha256 by path of what should be indexed, walked without the code under test."""
    found: dict[str, bytes] = {}
    for parent, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = Path(parent, name)
            if name.startswith(".") or path.suffix.lower() not in {".md", ".markdown"} or not path.is_file():
                continue  # hidden, no note, or a link to nothing
            found[str(path.relative_to(root))] = hashlib.sha256(path.read_bytes()).digest()
    return found


async def unexplained(vault: Vault, notes: Notes | None = None) -> dict[str, str]:
    """Where index and disk differ and the Drift report is silent."""
    report = await (notes or vault.notes).drift()
    told = {row.path: row.detail for row in report.rows}
    disk, index = truth(vault.root), await vault.in_index()
    differing = {path for path in disk.keys() | index.keys() if disk.get(path) != index.get(path)}
    return {
        path: f"on the disk: {path in disk}, in the index: {path in index}, told: {told.get(path)}"
        for path in differing
        if not told.get(path)
    }


async def idle(vault: Vault) -> bool:
    return await vault.value(_OPEN) == 0


async def is_true(vault: Vault) -> bool:
    """No job is open, and nothing differs but what could not be indexed."""
    if not await idle(vault):
        return False
    failed = await vault.failures()
    disk, index = truth(vault.root), await vault.in_index()
    return all(disk.get(path) == index.get(path) or path in failed for path in disk.keys() | index.keys())


async def settle(vault: Vault, timeout: float = 30) -> None:
    """Wait for quiet, then see that the invariant holds in every table."""
    try:
        await eventually(lambda: is_true(vault), timeout)
    except AssertionError as error:
        raise AssertionError(f"{await _state(vault)}") from error
    assert await unexplained(vault) == {}
    failed = await vault.failures()
    assert all(text.strip() and "Traceback" not in text for text in failed.values()), failed
    await vault.check()
    await _nothing_twice(vault, failed)


async def _state(vault: Vault) -> str:
    disk, index = truth(vault.root), await vault.in_index()
    jobs = await vault.rows(
        "SELECT path, kind, status, attempts, worker, error FROM job WHERE status <> 'done'"
    )
    return (
        f"missing {sorted(disk.keys() - index.keys())[:20]}, orphaned {sorted(index.keys() - disk.keys())[:20]},"
        f" stale {[path for path in disk.keys() & index.keys() if disk[path] != index[path]][:20]}, jobs {jobs[:20]}"
    )


async def _nothing_twice(vault: Vault, failed: dict[str, str]) -> None:
    stored: dict[str, list[tuple[int, int]]] = {}
    for path, start, end in await vault.rows(_PLACES):
        stored.setdefault(path, []).extend([(start, end)] if start else [])
    for path, places in stored.items():
        try:
            text = decode((vault.root / path).read_bytes())
        except (OSError, NoteError):
            assert path in failed
            continue
        if path not in failed:
            assert places == [(piece.line_start, piece.line_end) for piece in chunk(text)], path
