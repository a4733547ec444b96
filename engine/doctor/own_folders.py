"""The data and the state folder of the installation, and its files in them: there, writable, private."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.activity import LOG_FILE
from engine.doctor.check import Check, Finding, Mend, State, failed, fixed
from engine.errors import NoctuaryError
from engine.settings.paths import is_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from engine.settings import Settings

LOW_DISK_BYTES = 500 * 1024 * 1024
"""PostgreSQL goes down when its disk is full; below this there is no room for a large folder's index."""

NO_ROOM_BYTES = 16 * 1024 * 1024
"""One segment of its log: PostgreSQL goes down when it cannot make the next one."""

STATE_FILES = (LOG_FILE, f"{LOG_FILE}.lock", "search_history.jsonl", "theme")
"""What the program keeps in the state folder; the console's part among it has its names from there."""

OWNER_ONLY = 0o700
_OTHERS_WRITE = 0o022
_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class _Folder:
    """One of the two: `name` in the checks, the rights that others must not have, the files kept in it."""

    name: str
    others: int
    files: tuple[Path, ...]
    spare: tuple[Path, ...]
    """Those that a new one can stand in for."""


def own_folder_findings(settings: Settings) -> Iterator[Finding]:
    """Both folders, each made if it is missing, as every start makes it."""
    from engine.database.embedded.places import Places

    at = settings.paths.locations()
    places = Places(at["data"])
    data = _Folder(
        "data",
        _OTHERS_WRITE,
        (places.lock, places.users, places.serving, places.log),
        (places.log,),
    )
    kept = tuple(at["state"] / name for name in STATE_FILES)
    for folder in (data, _Folder("state", _OTHERS, kept, kept)):
        there = is_folder(at[folder.name])
        try:
            path = getattr(settings.paths, folder.name)
        except NoctuaryError as error:
            yield Finding(failed(f"{folder.name} folder", error))
            continue
        yield from _findings(folder, path, made=not there, embedded=not settings.database_url)


def _findings(folder: _Folder, path: Path, *, made: bool, embedded: bool) -> Iterator[Finding]:
    name = f"{folder.name} folder"
    if not _usable(path):
        yield _unwritable(name, path, _granted(path, stat.S_IRWXU))
        return
    wrong = [*_exposed(name, path, folder.others), *_files(name, folder)]
    check = _room(name, path) if folder.name == "data" else _kept(name, path)
    if check.state is not State.OK or not wrong:
        yield Finding(fixed(check, "It was not there, and was made.") if made else check)
    yield from wrong
    if embedded and folder.name == "data":
        yield from _remote(name, path)


def _room(name: str, folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    status = os.statvfs(folder)
    sentence = f"{folder} has {free / 1024**3:.1f} GB free."
    if free < NO_ROOM_BYTES:
        return Check(
            name,
            State.FAIL,
            f"The disk of {folder} is full: {free / 1024**2:.0f} MB are free.",
            "Free some space. The database goes down without it, and comes back with what was committed.",
            left="What may go from your disk, only you know.",
        )
    if status.f_files and not status.f_favail:
        return Check(
            name,
            State.FAIL,
            f"The file system of {folder} can hold no more files.",
            "Remove some files: the database goes down when it can make none.",
            left="What may go from your disk, only you know.",
        )
    if free < LOW_DISK_BYTES:
        return Check(name, State.WARN, sentence, "Free some space: a full disk stops the database.")
    return Check(name, State.OK, sentence)


def _kept(name: str, folder: Path) -> Check:
    return Check(name, State.OK, f"{folder} can be written; the log is {LOG_FILE} in it.")


def _exposed(name: str, path: Path, others: int) -> Iterator[Finding]:
    """A folder of ours in which others may write, or read what is private."""
    status = path.stat()
    if not status.st_mode & others:
        return
    verb = "write" if status.st_mode & _OTHERS_WRITE else "read"
    sentence = f"Other users may {verb} in {path} (its permissions are {stat.S_IMODE(status.st_mode):04o})."
    if path.is_symlink() or status.st_uid != os.geteuid():
        check = Check(
            name,
            State.WARN,
            sentence,
            "Take these rights away if nobody needs them.",
            left="It is a link to another place, or another user's: others may need it as it is.",
        )
        yield Finding(check)
    else:
        remedy = f"`noctuary doctor --fix` makes it yours alone ({OWNER_ONLY:04o})."
        yield Finding(Check(name, State.WARN, sentence, remedy), mend=_set_to(path, OWNER_ONLY))


def _files(name: str, folder: _Folder) -> Iterator[Finding]:
    """Files of ours that cannot be used: no file at all, or without the rights to it."""
    for path in folder.files:
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        aside = _aside(path)
        if not stat.S_ISREG(mode):
            sentence = f"{path} is not an ordinary file."
            remedy = "Move it away; what is needed is made anew."
            yield Finding(Check(name, State.FAIL, sentence, remedy), mend=aside)
        elif not _usable(path):
            mend = _granted(path, stat.S_IRUSR | stat.S_IWUSR)
            yield _unwritable(name, path, mend or (aside if path in folder.spare else None))


def _remote(name: str, path: Path) -> Iterator[Finding]:
    from engine.notes.watcher import remote_kind

    if kind := remote_kind(path):
        sentence = f"{path} lies on a network file system ({kind}), on which a database can be damaged."
        remedy = "Let XDG_DATA_HOME name a folder on a disk of this machine."
        left = "Moving a database is for you to decide."
        yield Finding(Check(name, State.WARN, sentence, remedy, left=left))


def _usable(path: Path) -> bool:
    return os.access(path, os.W_OK | (os.X_OK if is_folder(path) else os.R_OK))


def _unwritable(name: str, path: Path, mend: Mend | None) -> Finding:
    check = Check(
        name,
        State.FAIL,
        f"{path} cannot be written.",
        "Give yourself the right to (a file system may be mounted read-only), or name another folder by"
        f" XDG_{name.partition(' ')[0].upper()}_HOME.",
        left="" if mend else "It is another user's, or lies where nothing can be written.",
    )
    return Finding(check, blocks=name == "data folder", mend=mend)


def _granted(path: Path, rights: int) -> Mend | None:
    """Gives this user these rights to what is this user's; None where they are not what is missing."""
    status = path.stat()
    if status.st_uid != os.geteuid() or status.st_mode & rights == rights:
        return None
    return _set_to(path, stat.S_IMODE(status.st_mode) | rights)


def _set_to(path: Path, mode: int) -> Mend:
    async def set_mode() -> str:
        path.chmod(mode)
        return f"The permissions of {path.name} were set to {mode:04o}."

    return set_mode


def _aside(path: Path) -> Mend:
    async def put() -> str:
        from engine.database.embedded.cluster import put_aside

        return f"It was put aside as {put_aside(path).name}."

    return put
