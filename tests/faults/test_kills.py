"""The program killed a hundred times while it indexes and embeds: nothing lost, nothing half, nothing twice."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.faults.truth import settle
from tests.support import eventually

if TYPE_CHECKING:
    import random

    from tests.faults.nursery import Nursery
    from tests.integration.vault import Vault

KILLS, FILES = 100, 60

_VECTORS = """
    SELECT passage.heading, passage.text, embedding.vector::text FROM passage
    JOIN embedding ON embedding.passage = passage.id AND embedding.state = 'embedded'
    WHERE passage.orphaned_at IS NULL
"""
_WITHOUT = """
    SELECT count(*) FROM passage WHERE orphaned_at IS NULL AND NOT EXISTS (SELECT FROM embedding
        WHERE embedding.passage = passage.id AND embedding.state = 'embedded')
"""


def rewrite(vault: Vault, chance: random.Random) -> None:
    """One change of the kind an editor or a script makes."""
    path = f"{chance.randrange(6)}/{chance.randrange(FILES // 6)}.md"
    if chance.random() < 0.1:
        (vault.root / path).unlink(missing_ok=True)
        return
    parts = chance.randrange(1, 6)
    text = "\n\n".join(
        f"## Part {chance.randrange(9)}\n\nword{chance.randrange(500)} owls" for _ in range(parts)
    )
    if chance.random() < 0.5:
        vault.write(path, text)
    else:
        vault.write(f"{path}.tmp", text).rename(vault.root / path)


async def test_a_hundred_kills(
    vault: Vault, environment: dict[str, str], nursery: Nursery, chance: random.Random
) -> None:
    mine = {**environment, "DATABASE_URL": vault.settings.database_url or "", "NOCTUARY_LEASE_SECONDS": "0.5"}
    for _ in range(3 * FILES):
        rewrite(vault, chance)
    caught: list[tuple[int, int]] = []
    for _ in range(KILLS):
        pid = await nursery.spawn(mine, "watch", "work", "embed")
        end = time.monotonic() + chance.uniform(0.005, 0.3)
        while time.monotonic() < end:
            rewrite(vault, chance)
            await asyncio.sleep(0.02)  # the pace of the writing
        await nursery.kill(pid)
        counts = await vault.rows(
            "SELECT (SELECT count(*) FROM job WHERE status = 'processing'),"
            " (SELECT count(*) FROM embedding WHERE state = 'pending')"
        )
        caught += counts
    assert sum(jobs > 0 for jobs, _ in caught) > KILLS / 20, "it was not killed over its work"
    assert sum(passages > 0 for _, passages in caught) > KILLS / 20, "it was not killed over its vectors"
    last = await nursery.spawn(mine, "watch", "work", "embed")
    await settle(vault)
    for path, error in (await vault.failures()).items():
        assert "stopped while it worked on this (attempt 3 of 3)." in error, path
    await vault.notes.retry()  # the human's key, for notes that were in hand at three deaths
    await settle(vault)
    assert await vault.failures() == {}
    await eventually(lambda: _all_embedded(vault))
    await nursery.stop(last)
    await _as_a_fresh_index(vault)


async def _all_embedded(vault: Vault) -> bool:
    return await vault.value(_WITHOUT) == 0


async def _vectors(vault: Vault) -> dict[tuple[str, str], Any]:
    rows = await vault.rows(_VECTORS)
    found = {(row[0], row[1]): np.fromstring(row[2][1:-1], sep=",") for row in rows}
    assert len(found) == len(rows), "a passage has its vector once"
    return found


async def _as_a_fresh_index(vault: Vault) -> None:
    killed = await _vectors(vault)
    for table in ("chunk", "file", "posting", "segment", "job", "embedding", "passage"):
        await vault.rows(f"DELETE FROM {table}")
    await vault.index(embed=True)
    fresh = await _vectors(vault)
    assert killed.keys() == fresh.keys()
    for key, vector in killed.items():
        other = fresh[key]
        assert vector @ other / np.linalg.norm(vector) / np.linalg.norm(other) > 0.999, key
