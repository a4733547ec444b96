"""A new note on the disk: the only place of the program that writes into a folder of notes.

It only ever adds. The way to the note is opened name by name, no link is followed, and the note appears under
its name whole and at once or not at all; what has that name already stays. Writers of one folder take turns.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from engine.errors import WriteError
from engine.notes import disk
from engine.notes.newpath import Refused, folded, parts, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MOST_BYTES = 256 * 1024
"""Of a note that a model writes: some eighty pages."""

PATIENCE, PAUSE = 10.0, 0.02
"""Seconds until another writer of the folder, who needs milliseconds, is given up; and between two looks."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LEFT = re.compile(r"\.noctuary-[0-9a-f]{16}\.tmp")
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK}
"""A file system without hard links."""

_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")


def never() -> bool:
    """Nobody calls it off."""
    return False


def checked_text(text: str) -> str:
    """The text as it will stand in the note: line ends of one kind, and one at its end.

    Raises:
        Refused: it is empty, too long, no text in Unicode, or holds control characters.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    problem = ""
    if not text.strip():
        problem = "is empty"
    elif any("\ud800" <= letter <= "\udfff" for letter in text):
        problem = "holds halves of characters"
    elif found := _UNWANTED.search(text):
        problem = f"holds the control character U+{ord(found[0]):04X}"
    elif len(text.encode()) > MOST_BYTES:
        problem = f"is longer than {MOST_BYTES // 1024} KiB"
    if problem:
        raise Refused(f"The text of the note {problem}.", remedy="Give another one.")
    return text.rstrip("\n") + "\n"


def check(root: Path, path: str) -> str:
    """See that a note could be written there, and write nothing. Returns the path as it will be.

    Raises:
        Refused: it could not, and another path may do.
        WriteError: the folder cannot be read.
    """
    names = _allowed(root, path)
    with ExitStack() as held, _told():
        _free(_descend(held, _root(held, root), names), names)
    return "/".join(names)


def create(root: Path, path: str, text: str, called_off: Callable[[], bool] = never) -> str:
    """Write a note that is not there yet. Returns its path. Blocks; folders on the way are made as needed.

    `called_off` is asked at the last moment; then nothing is left behind, as after an error.

    Raises:
        Refused: it cannot have this path or this text, and another may do.
        WriteError: the disk does not take it.
    """
    names, data = _allowed(root, path), checked_text(text).encode()
    with ExitStack() as held, _told():
        top = _root(held, root)
        if _has_turn(top):
            _clear(top)
        way = _descend(held, top, names)
        _free(way, names)
        temporary = held.enter_context(_written_beside(way[-1], data))
        if called_off():
            raise WriteError("It was called off.")
        _name(held, way, temporary, names)
    return "/".join(names)


def _allowed(root: Path, path: str) -> tuple[str, ...]:
    names = parts(path)
    relative = "/".join(names)
    if disk.through_link(root, "/".join(names[:-1])):
        raise Refused(f"The path {shown(path)} leads through a link.", remedy="Give another one.")
    if disk.excluded(root, relative):
        raise Refused(f"The path {shown(path)} is ignored by a .gitignore.", remedy="Give another one.")
    return names


@contextmanager
def _told() -> Iterator[None]:
    """What the disk says against it, in a sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise WriteError(f"The note could not be written: {reason}.", remedy="Look at the folder.") from error


def _root(held: ExitStack, root: Path) -> int:
    return _held(held, os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _held(held: ExitStack, descriptor: int) -> int:
    held.callback(os.close, descriptor)
    return descriptor


def _has_turn(top: int) -> bool:
    """Wait until no other writer is at work in this folder; the turn ends with the descriptor. False where
    the file system has no locks: nobody may clear up after others there; no name is taken twice all the same.
    """
    end = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(top, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise WriteError(
                    "Another writer has been at work in this folder for too long.", remedy="Try again later."
                ) from None
            time.sleep(PAUSE)
        except OSError:
            return False
        else:
            return True


def _clear(top: int) -> None:
    """Remove what writers left that were killed. Whoever has the turn is the only one who writes."""
    for _, folders, files, descriptor in os.fwalk(".", dir_fd=top):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if _LEFT.fullmatch(name):
                with suppress(OSError):
                    os.unlink(name, dir_fd=descriptor)


def _descend(held: ExitStack, top: int, names: Sequence[str]) -> list[int]:
    """Descriptors of the root and of the folders on the way that are there."""
    way = [top]
    for name in names[:-1]:
        if name not in _names(way[-1]):
            break
        way.append(_open_folder(held, way[-1], name))
    return way


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _open_folder(held: ExitStack, parent: int, name: str) -> int:
    try:
        return _held(held, os.open(name, _FOLDER, dir_fd=parent))
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise Refused(f"{shown(name)} is no folder.", remedy="Give another path.") from error
        raise


def _free(way: Sequence[int], names: Sequence[str]) -> None:
    """See that the first name on the way that is not there is none that differs only in case or form."""
    wanted = names[len(way) - 1]
    for name in _names(way[-1]):
        if folded(name) == folded(wanted):
            same = "" if name == wanted else f", as {shown(name)}"
            raise Refused(f"{shown('/'.join(names[: len(way)]))} exists already{same}.", remedy=_ANOTHER)


_ANOTHER = "Nothing that exists is overwritten: give another path."


@contextmanager
def _written_beside(folder: int, data: bytes) -> Iterator[tuple[int, str]]:
    """A hidden file that holds the data, safe on the disk: its folder and name. It is gone afterwards."""
    name = f".noctuary-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(name, _NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        yield folder, name
    finally:
        with suppress(OSError):  # the next writer clears it
            os.unlink(name, dir_fd=folder)


def _name(held: ExitStack, way: list[int], temporary: tuple[int, str], names: Sequence[str]) -> None:
    """Give what is written its name, making the folders on the way that are missing."""
    made: list[tuple[int, str]] = []
    try:
        for name in names[len(way) - 1 : -1]:
            with suppress(FileExistsError):  # somebody made it this moment
                os.mkdir(name, dir_fd=way[-1])
                made.append((way[-1], name))
            way.append(_open_folder(held, way[-1], name))
        _link(temporary, way[-1], names[-1])
    except BaseException:  # an interrupt too: no empty folder is left
        for parent, name in reversed(made):
            with suppress(OSError):  # somebody put something into it meanwhile
                os.rmdir(name, dir_fd=parent)
        raise
    for folder in (way[-1], *(parent for parent, _ in made)):
        with suppress(OSError):  # not every file system can; the note is there all the same
            os.fsync(folder)


def _link(temporary: tuple[int, str], folder: int, name: str) -> None:
    source, its_name = temporary
    try:
        _link_or_rename(source, its_name, folder, name)
    except FileExistsError as error:
        raise Refused(f"{shown(name)} exists already.", remedy=_ANOTHER) from error


def _link_or_rename(source: int, its_name: str, folder: int, name: str) -> None:
    try:
        os.link(its_name, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(name, _NEW, 0o666, dir_fd=folder))  # the name is ours now, and what has it is empty
        os.replace(its_name, name, src_dir_fd=source, dst_dir_fd=folder)
