"""ChatGPT's export: `conversations.json`, alone or in the zip that is sent.

It is one array of conversations, each a tree of messages (`mapping`) of which the path to `current_node` is
what was said in the end. The newest conversation comes first, so all that is said is held before it is told.
"""

from __future__ import annotations

import zipfile
import zlib
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from engine.errors import SourceError
from engine.memory.importers.lines import moment, table, text_of
from engine.memory.importers.model import ImportedTurn, Skip
from engine.text.safe import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "conversations.json"
DEEPEST = 64
"""Levels of an export that are read: a parser keeps something of each."""

_OPENS = frozenset({"start_map", "start_array"})
_CLOSES = frozenset({"end_map", "end_array"})
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


def files(path: Path) -> list[Path]:
    """Every `conversations.json` below a folder, or the file itself."""
    return sorted(path.rglob(NAME)) if path.is_dir() else [path]


def read(path: Path) -> Iterator[ImportedTurn | Skip]:
    """See `Reader`. The oldest conversation comes first."""
    import ijson

    try:
        with _opened(path) as file:
            found = list(_conversations(path, file))
    # RuntimeError is what an encrypted archive raises.
    except (ijson.JSONError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        why = (str(error).splitlines() or [""])[0].rstrip(".")
        raise _other(path, f": {visible(why)[:120]}") from error
    for _, turns in sorted(found, key=lambda each: each[0]):
        yield from turns


def _conversations(path: Path, file: IO[bytes]) -> Iterator[tuple[datetime, list[ImportedTurn | Skip]]]:
    """The conversations in the file's order, one held at a time.

    Raises:
        SourceError: it is no array, or nests deeper than any export does.
    """
    import ijson
    from ijson.common import ObjectBuilder

    builder, depth, number = ObjectBuilder(), 0, 0
    for event, value in ijson.basic_parse(file, use_float=True):
        if depth == 0 and event != "start_array":
            raise _other(path, ": it is no list of conversations")
        depth += (event in _OPENS) - (event in _CLOSES)
        if depth > DEEPEST:
            raise _other(path, f": it nests deeper than {DEEPEST} levels")
        if depth > 1 or (depth == 1 and event in _CLOSES):
            builder.event(event, value)
        if depth == 1 and event != "start_array":
            number += 1
            yield _conversation(f"{path.name}:{number}", getattr(builder, "value", None))
            builder = ObjectBuilder()


def _other(path: Path, why: str) -> SourceError:
    return SourceError(
        f"{path} is not ChatGPT's {NAME}{why}.", remedy="Export the data again, and unpack the zip."
    )


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.rsplit("/", 1)[-1] == NAME]
        if not names:
            raise SourceError(f"There is no {NAME} in {path}.")
        with archive.open(names[0]) as inside:
            yield inside


def _conversation(origin: str, conversation: object) -> tuple[datetime, list[ImportedTurn | Skip]]:
    """When it began, and what it says."""
    if not isinstance(conversation, dict) or not table(conversation.get("mapping")):
        return _NEVER, [Skip(origin, "not a conversation")]
    name = text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))
    begun = moment(conversation.get("create_time"))
    channel = f"chatgpt {name or text_of(conversation.get('title')) or origin}"[:256]
    turns = [
        _turn(f"{origin} {place}", channel, message, begun)
        for place, message in enumerate(_path(conversation["mapping"], conversation.get("current_node")), 1)
    ]
    return begun or _NEVER, turns


def _path(mapping: dict[str, Any], node: object) -> list[Any]:
    """The messages from the first to a node, or all in the file's order where the node is none."""
    messages, seen = [], set()
    while isinstance(node, str) and node in mapping and node not in seen:
        seen.add(node)
        step = table(mapping[node])
        messages.append(step.get("message"))
        node = step.get("parent")
    if not seen:
        return [step.get("message") for step in mapping.values() if isinstance(step, dict)]
    return messages[::-1]


def _turn(origin: str, channel: str, message: object, begun: datetime | None) -> ImportedTurn | Skip:
    if not isinstance(message, dict):
        return Skip(origin, "not a message")
    metadata, content = table(message.get("metadata")), table(message.get("content"))
    role = table(message.get("author")).get("role")
    if role not in ("user", "assistant") or metadata.get("is_visually_hidden_from_conversation"):
        return Skip(origin, "written by the program")
    if message.get("recipient") not in (None, "all"):
        return Skip(origin, "a call of a tool")
    parts = content.get("parts") if content.get("content_type") in ("text", "multimodal_text") else None
    said = parts if isinstance(parts, list) else []
    text = "\n\n".join(part for part in said if isinstance(part, str) and part.strip()).strip()
    if not text:
        return Skip(origin, "no text")
    key = text_of(message.get("id")) or origin
    at = moment(message.get("create_time")) or begun
    return ImportedTurn(key[:128], channel, str(role), text, at, origin)
