"""Adding a labelled question to a file of them: whole or not at all, and losing none of anybody else's.

Two at once wait for each other, by a lock on the folder, which outlives the file that is replaced.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import tempfile
import unicodedata
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import DatasetError
from engine.notes import labelled
from engine.notes.labelled import Expect, Question
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = 6
"""Words of a question that make its id."""

NEW_MODE = 0o644

_NO_LOCKS = {errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL}
"""A file system without locks: the file is still replaced whole."""


def add(file: Path, question: str, answer: str | None, identity: str | None, k: int | None) -> Question:
    """Add a question that `answer` ("path:L3-L9") answers, or without one nothing; blocks on the disk.

    Raises:
        DatasetError: the file is not one of questions, has one of that id, or cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file = file.resolve()  # a link stays one
        with _alone(file.parent):
            rows, known = _present(file)
            if identity is not None and identity in known:
                raise DatasetError(
                    f"{file} has a question {identity!r} already.", remedy="Give another --id."
                )
            row = _row(identity or _name(question, known), question, answer, k)
            data = (json.dumps([*rows, row], ensure_ascii=False, indent=2) + "\n").encode()
            added = labelled.parse(data, str(file))[-1]
            _replace(file, data)
    except OSError as error:
        raise DatasetError(f"{file} cannot be written: {error.strerror or error}.") from error
    return added


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(descriptor)


def _present(file: Path) -> tuple[list[Any], set[str]]:
    """The rows of the file as they stand, and the ids they have."""
    if not file.exists():
        return [], set()
    data = labelled.data(file)
    if not data.strip():
        return [], set()
    questions = labelled.parse(data, str(file))
    return json.loads(data.decode("utf-8-sig")), {each.id for each in questions}


def _row(identity: str, question: str, answer: str | None, k: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"id": identity, "question": spelt(question)}
    if answer is None:
        row["expect"] = str(Expect.NEGATIVE)
    else:
        row["expect"] = str(Expect.CITATION)
        row["expect_path_contains"] = spelt(answer.rpartition(":L")[0] or answer)
        row["expect_lines"] = spelt(answer)
    return row | ({} if k is None else {"k": k})


def _name(question: str, known: set[str]) -> str:
    """An id out of the question's first words, which no other has."""
    folded = unicodedata.normalize("NFKC", spelt(question)).casefold()
    name = "-".join(re.findall(r"\w+", folded)[:WORDS]) or "question"
    number, found = 1, name
    while found in known:
        number += 1
        found = f"{name}-{number}"
    return found


def _replace(file: Path, data: bytes) -> None:
    """Put the new text in the file's place in one step, with the rights that the old one had."""
    mode = file.stat().st_mode & 0o7777 if file.exists() else NEW_MODE
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as fresh:
            os.fchmod(fresh.fileno(), mode)
            fresh.write(data)
            fresh.flush()
            os.fsync(fresh.fileno())
        Path(name).replace(file)
    except BaseException:  # an interrupt too: nothing is left beside the file
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
