"""An engine that watches a folder, as tests of the watcher hold it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine.notes import Notes
from engine.services import Services
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.notes.model import WatchMode, WatchState
    from tests.integration.vault import Vault


@dataclass
class Watched:
    """A vault whose changes are noticed and worked off in this process."""

    vault: Vault
    notes: Notes
    services: Services

    @property
    def state(self) -> WatchState:
        """The watcher of the vault's folder."""
        return self.notes._watchers[self.vault.folder.id].state

    async def agrees(self, timeout: float = 40) -> None:
        """Wait until the queue is empty and the index equals the disk."""

        async def so() -> bool:
            if await self.vault.value(
                "SELECT EXISTS (SELECT FROM job WHERE status IN ('pending', 'processing'))"
            ):
                return False
            return await self.vault.in_index() == self.vault.on_disk()

        try:
            await eventually(so, timeout)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self._standing()}") from None

    async def _standing(self) -> str:
        """All that can tell why the index does not equal the disk."""
        jobs = await self.vault.rows("SELECT to_jsonb(job) FROM job ORDER BY id")
        problem = await self.vault.rows("SELECT now(), mode, reason, beat_at FROM watcher")
        lines = [f"jobs {jobs}", f"watcher {self.state}", f"told {problem}", f"faults {self.services.faults}"]
        lines.append(f"index {await self.vault.in_index()}")
        lines.append(f"disk {self.vault.on_disk()}")
        return "\n".join(lines)

    async def mode(self, mode: WatchMode, timeout: float = 10) -> None:
        """Wait until the watcher is in a mode."""
        await eventually(lambda: self.state.mode is mode, timeout)


@asynccontextmanager
async def watched(vault: Vault, **changes: Any) -> AsyncIterator[Watched]:
    """Watch and work, no vectors; `changes` are settings. Ready when the first survey is worked off."""
    services = Services()
    settings = replace(vault.settings, **changes)
    notes = Notes(vault.database, vault.notes.embedders._embedder, settings, services)
    await notes.prepare()
    await notes.start(watch=True, work=True, embed=False)
    try:
        held = Watched(vault, notes, services)
        await eventually(lambda: vault.folder.id in notes._watchers)
        await eventually(lambda: held.state.beat is not None)
        await held.agrees()
        yield held
    finally:
        await services.stop()
