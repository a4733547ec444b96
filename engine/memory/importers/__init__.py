"""Importers: what other programs kept of conversations, read as turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.brain.channels import Origin
from engine.errors import SourceError
from engine.memory.importers import chatgpt, claude_code, codex, plain

if TYPE_CHECKING:
    from engine.memory.importers.model import Reader

READERS: dict[Origin, Reader] = {
    Origin.CLAUDE_CODE: claude_code,
    Origin.CODEX: codex,
    Origin.CHATGPT: chatgpt,
    Origin.JSONL: plain,
}


def kind_of(name: str) -> Origin:
    """The kind of a name.

    Raises:
        SourceError: there is none of that name.
    """
    for kind in READERS:
        if kind == name:
            return kind
    raise SourceError(f"There is no importer for {name[:80]!r}.", remedy=f"There are: {', '.join(READERS)}.")
