"""The noun of importing: what an import of conversations did, or would do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did, or would do. `skipped` counts by reason; `examples` gives a place for each."""

    kind: str
    path: str
    dry_run: bool
    files: int = 0
    turns: int = 0
    packets: int = 0
    known: int = 0
    """Turns that had been imported before."""
    masked: int = 0
    recalled: int = 0
    channels: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
