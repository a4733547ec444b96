"""The disk side: which notes a folder holds, and reading one of them as it really is.

Everything here blocks and is called in a thread. Nothing here ever writes.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import NoteError
from engine.text.safe import spelt

if TYPE_CHECKING:
    from pathlib import Path

    from pathspec import GitIgnoreSpec

SUFFIXES = (".md", ".markdown")

YOUNG_NS = 100_000_000
"""A file changed less than this before it was read may change again within one tick of the file
system's clock (4 to 10 ms, 2 s on FAT) and keep its time stamps: its stamps are not trusted."""

READ_ATTEMPTS = 5
"""Times a file that changes under our hands is read again before the job waits for quiet."""

MAX_PATH_BYTES = 2_000
"""A path's length as the database can still look it up; the longest file name has 255 bytes."""

FARTHEST_NS = 9_000_000_000 * 10**9
"""The year 2255, and as far back: what fits into 64 bits, also after a detour by a float."""

_MAX_BYTES = 16 * 1024 * 1024  # a note is prepared whole: its words, counted, take fifteen times that


@dataclass(frozen=True, slots=True)
class Stamp:
    """What `stat` says of a file: enough to tell that it was not written since."""

    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(slots=True)
class Listing:
    """The notes below a folder. `unreadable` maps a path to the reason it could not be looked at."""

    files: dict[str, Stamp] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)

    def covers(self, path: str) -> bool:
        """Whether a path that is absent from `files` is really gone, not merely out of sight."""
        return not any(path == lost or path.startswith(lost + "/") or not lost for lost in self.unreadable)


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's bytes with the stamp that held before and after they were read."""

    raw: bytes
    stamp: Stamp


class Unsettled(NoteError):
    """The file kept changing while it was read; it wants another look in a moment."""


def is_note(name: str) -> bool:
    """Whether a file name is one of a note: Markdown, and not hidden."""
    return not name.startswith(".") and name.lower().endswith(SUFFIXES)


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a stat result; the time stamps of a very young file are not to be trusted."""
    now = time.time_ns()  # the modification time can be set to any, also one to come
    young = now - status.st_ctime_ns < YOUNG_NS or abs(now - status.st_mtime_ns) < YOUNG_NS
    return Stamp(status.st_size, written_ns(status), 0 if young else status.st_ctime_ns)


def written_ns(status: os.stat_result) -> int:
    """The modification time as far as the database can hold it; a file may be dated in any century."""
    return max(-FARTHEST_NS, min(status.st_mtime_ns, FARTHEST_NS))


def listing(root: Path, below: str = "") -> Listing:
    """All notes under `root` (or under `below`, a relative path in it) that are not ignored.

    Hidden files and folders and what `.gitignore` files exclude are skipped; links to folders are
    not followed, so a loop of links ends; links to files are. A folder that cannot be read is
    reported, and so is a name that is not UTF-8.
    """
    found = Listing()
    ignored = Ignored(root)
    if below and _out(root, below, ignored):
        return found
    pending = [below]
    while pending:
        _list_one(root, pending.pop(), ignored, found, pending)
    return found


def _list_one(root: Path, relative: str, ignored: Ignored, found: Listing, pending: list[str]) -> None:
    prefix = f"{relative}/" if relative else ""
    try:
        with os.scandir(root / relative if relative else root) as entries:
            children = list(entries)
    except FileNotFoundError:
        if not relative:
            found.unreadable[""] = "it does not exist"
        return
    except NotADirectoryError:
        return
    except OSError as error:
        found.unreadable[spelt(relative)] = error.strerror or str(error)
        return
    if any(child.name == ".gitignore" for child in children):
        ignored.read(relative)
    for child in children:
        if not child.name.startswith("."):
            _take(child, prefix + child.name, ignored, found, pending)


def _take(child: os.DirEntry[str], path: str, ignored: Ignored, found: Listing, pending: list[str]) -> None:
    try:
        _look_at(child, path, ignored, found, pending)
    except FileNotFoundError:
        return  # gone since the folder was read, or a link to nothing
    except UnicodeEncodeError:
        found.unreadable[spelt(path)] = "its name is not UTF-8; rename it"
    except OSError as error:
        found.unreadable[spelt(path)] = error.strerror or str(error)


def _look_at(
    child: os.DirEntry[str], path: str, ignored: Ignored, found: Listing, pending: list[str]
) -> None:
    if child.is_dir(follow_symlinks=False):
        if not ignored.is_out(path, folder=True):
            pending.append(path)
    elif child.name.lower().endswith(SUFFIXES) and not ignored.is_out(path, folder=False):
        length = len(path.encode("utf-8"))
        status = child.stat()
        if not stat.S_ISREG(status.st_mode):
            return
        if length > MAX_PATH_BYTES:
            found.unreadable[path] = f"its path has {length:,} bytes; at most {MAX_PATH_BYTES:,} are indexed"
        else:
            found.files[path] = stamp_of(status)


def nameable(path: str) -> bool:
    """Whether the index can hold a relative path: it is UTF-8, and not too long."""
    try:
        return len(path.encode("utf-8")) <= MAX_PATH_BYTES
    except UnicodeEncodeError:
        return False


def through_link(root: Path, relative: str) -> bool:
    """Whether a folder's relative path leads through a link, which a listing does not follow."""
    parts = relative.split("/") if relative else []
    return any((root / "/".join(parts[:depth])).is_symlink() for depth in range(1, len(parts) + 1))


def hidden(relative: str) -> bool:
    """Whether any part of a relative path is hidden."""
    return any(part.startswith(".") for part in relative.split("/"))


class Ignored:
    """The `.gitignore` files that bear on a root: those above it up to the repository, and below it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._specs: dict[str, GitIgnoreSpec] = {}
        self._above: list[tuple[str, GitIgnoreSpec]] = []
        self._read_above()

    def _read_above(self) -> None:
        repository = next((up for up in (self._root, *self._root.parents) if _is_repository(up)), None)
        if repository is None:
            return
        for up in self._root.parents:
            if not up.is_relative_to(repository):
                break
            spec = _spec(up / ".gitignore")
            if spec is not None:
                self._above.append((self._root.relative_to(up).as_posix() + "/", spec))

    def read(self, relative: str) -> None:
        """Take a folder's `.gitignore` into account."""
        spec = _spec(self._root / relative / ".gitignore")
        if spec is not None:
            self._specs[relative] = spec

    def is_out(self, path: str, *, folder: bool) -> bool:
        """Whether git would ignore `path`: the nearest file that has a say decides."""
        if not self._specs and not self._above:
            return False
        wanted = path + "/" if folder else path
        parent = path.rpartition("/")[0]
        while True:
            spec = self._specs.get(parent)
            if spec is not None:
                verdict = spec.check_file(wanted[len(parent) + 1 if parent else 0 :]).include
                if verdict is not None:
                    return verdict
            if not parent:
                break
            parent = parent.rpartition("/")[0]
        for prefix, spec in self._above:
            verdict = spec.check_file(prefix + wanted).include
            if verdict is not None:
                return verdict
        return False

    def folder_is_out(self, relative: str) -> bool:
        """Whether a folder or one above it is ignored, reading the `.gitignore` files on the way."""
        self.read("")
        parts = relative.split("/") if relative else []
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            if self.is_out(part, folder=True):
                return True
            self.read(part)
        return False


def _is_repository(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:  # it cannot be looked into
        return False


def _spec(path: Path) -> GitIgnoreSpec | None:
    try:
        if not path.is_file():  # a pipe of that name would never end
            return None
        text = path.read_text("utf-8-sig", errors="replace")
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(line for line in text.splitlines() if _is_pattern(line))


def _is_pattern(line: str) -> bool:
    """Whether a line can be read: like git, we pass over one that cannot."""
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:  # GitIgnorePatternError is one, and is not exported
        return False
    return True


def excluded(root: Path, path: str) -> bool:
    """Whether a single note is out: hidden, not Markdown, below a link to a folder, or ignored."""
    folder, _, name = path.rpartition("/")
    if hidden(path) or not is_note(name) or through_link(root, folder):
        return True
    ignored = Ignored(root)
    return ignored.folder_is_out(folder) or ignored.is_out(path, folder=False)


def excluded_folder(root: Path, path: str) -> bool:
    """Whether a folder is out, and with it all its notes: hidden, below a link, or ignored."""
    return _out(root, path, Ignored(root))


def _out(root: Path, path: str, ignored: Ignored) -> bool:
    return hidden(path) or through_link(root, path) or ignored.folder_is_out(path)


def read(path: Path, *, growing: bool = False) -> Reading | None:
    """A note's bytes, or None when there is no regular file (any more).

    With `growing`, a file that never stands still but is only added to, as a log is, is read as far
    as two readings agree, up to the end of a line; its stamp then vouches for nothing.

    Raises:
        Unsettled: the file changed during each of READ_ATTEMPTS readings.
        NoteError: it cannot be read, or is too large to be a note.
    """
    earlier = b""
    for _ in range(READ_ATTEMPTS):
        attempt = _read_once(path)
        if attempt is None:
            return None
        raw, before, after = attempt
        if stamp_key(before) == stamp_key(after) and len(raw) == after.st_size:
            return Reading(raw, stamp_of(after))
        if growing and earlier and raw.startswith(earlier):
            whole = earlier[: earlier.rfind(b"\n") + 1] or earlier
            return Reading(whole, Stamp(len(whole), written_ns(before), 0))
        earlier = raw
    raise Unsettled(
        f"{path} keeps changing while it is read.", remedy="Retry it when what writes it has come to rest."
    )


def _read_once(path: Path) -> tuple[bytes, os.stat_result, os.stat_result] | None:
    """The bytes of a regular file, and what `stat` said before and after."""
    try:
        # O_NONBLOCK: a named pipe called note.md must not hold the worker for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NoteError(f"{path} cannot be read: {error.strerror}.", remedy="Check its rights.") from error
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            return None
        _check_size(path, before.st_size)
        return _bytes(descriptor), before, os.fstat(descriptor)
    except OSError as error:
        raise NoteError(f"{path} cannot be read: {error.strerror}.", remedy="Check the disk.") from error
    finally:
        os.close(descriptor)


def _bytes(descriptor: int) -> bytes:
    with open(descriptor, "rb", closefd=False) as stream:
        return stream.read()


def _check_size(path: Path, size: int) -> None:
    if size > _MAX_BYTES:
        raise NoteError(
            f"{path} has {size:,} bytes; a note has at most {_MAX_BYTES:,}.",
            remedy="Split it, or exclude it by .gitignore.",
        )


def stamp_key(status: os.stat_result) -> tuple[int, int, int, int]:
    """What must be equal for two stats to be of the same unwritten file."""
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def root_problem(
    root: Path, device: int | None, *, indexed: int, on_disk: int, missing: int = 0
) -> str | None:
    """Why a root's disk side is not to be believed now, or None when it is.

    An empty or unmounted root never empties the index by itself, also when a stray note lies under the
    point where its file system should be mounted. `missing` counts notes that are indexed and not
    there; without any, a file system that got another number after a restart is no problem.
    """
    try:
        status = root.stat()
    except OSError as error:
        return f"The folder cannot be reached ({error.strerror}); its notes are kept as they were."
    if not stat.S_ISDIR(status.st_mode):
        return "It is no folder any more; its notes are kept as they were."
    elsewhere = device is not None and status.st_dev != device
    if elsewhere and missing and on_disk:
        return (
            "It lies on another file system than before, and notes are missing there; what is indexed is"
            " kept until you repair it."
        )
    if indexed and not on_disk:
        if elsewhere:
            return "Another file system is mounted there and holds no notes; its notes are kept as they were."
        return "The folder holds no notes any more; what is indexed is kept until you repair it."
    return None


def doubtful(root: Path, device: int | None) -> bool:
    """Whether a note that is absent under a root may be merely out of sight: see `root_problem`."""
    try:
        return (device is not None and root.stat().st_dev != device) or not any_note(root)
    except OSError:
        return True


def any_note(root: Path) -> bool:
    """Whether at least one note can be seen under a root."""
    pending = [""]
    ignored = Ignored(root)
    while pending:
        found = Listing()
        _list_one(root, pending.pop(), ignored, found, pending)
        if found.files:
            return True
    return False
