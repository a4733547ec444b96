"""Plain JSON lines: `{"channel": …, "role": "user" | "assistant", "text": …, "at": …}`.

`speaker` may name who says it, `id` what the line is known by again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from engine.memory.importers.lines import moment, objects, text_of
from engine.memory.importers.model import ImportedTurn, Skip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLES = ("user", "assistant")


def files(path: Path) -> list[Path]:
    """Every `.jsonl` below a folder, or the file itself."""
    return sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]


def read(path: Path) -> Iterator[ImportedTurn | Skip]:
    """See `Reader`."""
    seen: dict[str, int] = {}
    for each in objects(path):
        if isinstance(each, Skip):
            yield each
            continue
        origin, row = each
        channel, role, text = (text_of(row.get(name)) for name in ("channel", "role", "text"))
        if not channel or len(channel) > 256:
            yield Skip(origin, "no channel")
        elif role not in ROLES:
            yield Skip(origin, "a role that is neither user nor assistant")
        elif not text.strip():
            yield Skip(origin, "no text")
        else:
            at = moment(row.get("at"))
            # The same words may be said twice; the same line of a file that grew is one.
            told = f"{channel}\0{role}\0{at}\0{text}"
            seen[told] = seen.get(told, 0) + 1
            key = hashlib.sha256(f"{told}\0{seen[told]}".encode("utf-8", "replace")).hexdigest()[:32]
            given = text_of(row.get("id")) or key
            yield ImportedTurn(
                given[:128], channel, role, text, at, origin, text_of(row.get("speaker"))[:256]
            )
