"""The doctor's look at the embedded server, which changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.database.model import silent
from engine.doctor.server import server_findings

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database.embedded.places import Places
    from engine.doctor.check import Finding


def everything(places: Places) -> dict[Path, tuple[int, int, int, bytes]]:
    """All that lies in the data folder, to see that nothing was changed."""
    found = {}
    for path in places.data.parent.rglob("*"):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[path] = (status.st_mode, status.st_uid, status.st_mtime_ns, content)
    return found


async def findings(places: Places) -> list[Finding]:
    """What is found; looking changes nothing."""
    before = everything(places)
    found = await server_findings(places, silent)
    assert everything(places) == before
    return found


async def finding(places: Places) -> Finding:
    (found,) = await findings(places)
    return found
