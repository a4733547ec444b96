"""Session files of the Codex CLI: `rollout-*.jsonl` below `~/.codex/sessions/`, one file a session.

The first line is about the session (`session_meta`). What is said are messages: `response_item` lines whose
payload is of type `message`, or, in files of early versions, such a payload as the line itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.memory.importers.lines import moment, objects, table, text_of
from engine.memory.importers.model import ImportedTurn, Skip

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TEXTS = frozenset({"input_text", "output_text", "text"})
_PROGRAM = re.compile(
    r"\s*(?:<(?:user_instructions|environment_context|permissions instructions|INSTRUCTIONS|turn_aborted"
    r"|collaboration_mode|skills?|user_action)>|# AGENTS\.md instructions)"
)


def files(path: Path) -> list[Path]:
    """Every session below a folder, or the file itself."""
    return sorted(path.rglob("rollout-*.jsonl")) if path.is_dir() else [path]


def read(path: Path) -> Iterator[ImportedTurn | Skip]:
    """See `Reader`."""
    session = path.stem
    for number, each in enumerate(objects(path)):
        if isinstance(each, Skip):
            yield each
            continue
        origin, row = each
        payload = table(row.get("payload")) or row
        if row.get("type") == "session_meta" or (number == 0 and "role" not in payload):
            session = text_of(payload.get("id")) or session
            yield Skip(origin, "not a message")
        else:
            yield _turn(session, number, origin, row, payload)


def _turn(
    session: str, number: int, origin: str, row: dict[str, Any], payload: dict[str, Any]
) -> ImportedTurn | Skip:
    if payload is not row and row.get("type") != "response_item":
        return Skip(origin, "not a message")
    if payload.get("type", "message") != "message":
        return Skip(origin, "a call of a tool, its result, or a thought")
    role = payload.get("role")
    if role not in ("user", "assistant"):
        return Skip(origin, "written by the program")
    content = payload.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [text_of(block.get("text")) for block in blocks if block.get("type") in _TEXTS]
    text = "\n\n".join(each for each in texts if each.strip() and not _PROGRAM.match(each)).strip()
    if not text:
        return Skip(origin, "written by the program" if any(map(_PROGRAM.match, texts)) else "no text")
    at = moment(row.get("timestamp"))
    return ImportedTurn(f"line {number}", f"codex {session}"[:256], str(role), text, at, origin)
