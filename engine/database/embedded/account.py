"""The system account the server runs as. PostgreSQL refuses to run as root.

As root, an account that exists already is borrowed; none is made, and no folder's permissions are
changed but those of the data folder itself.
"""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from engine.errors import DatabaseRefused, DatabaseUnavailable


class Identity(TypedDict, total=False):
    """The part of `subprocess.Popen`'s arguments that says who the child is."""

    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """A user and group; `borrowed` when it is not the one this process runs as."""

    uid: int
    gid: int
    borrowed: bool

    def identity(self) -> Identity:
        """How a child is started as this account."""
        if not self.borrowed:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


def account_for(folder: Path) -> Account:
    """Who serves the data folder `folder`, which may not exist yet.

    Raises:
        DatabaseRefused: the folder is another user's.
        DatabaseUnavailable: this is root, and there is no account to borrow.
    """
    if os.geteuid() != 0:
        if folder.exists() and folder.stat().st_uid != os.geteuid():
            raise DatabaseRefused(
                f"The data folder {folder} belongs to another user (uid {folder.stat().st_uid}).",
                remedy="Run as that user, or set XDG_DATA_HOME to a folder of your own.",
            )
        return Account(os.geteuid(), os.getegid(), borrowed=False)
    # An ordinary user's data, or the borrowed account's of an earlier run, stays theirs; and what
    # is made in an ordinary user's folder (sudo) must not lock that user out.
    nearest = next(place for place in (folder, *folder.parents) if place.exists()).stat()
    if nearest.st_uid:
        return Account(nearest.st_uid, nearest.st_gid, borrowed=True)
    return _unprivileged()


def give(folder: Path, account: Account) -> None:
    """Make `account` the owner of `folder` and all in it, if it is not; links are not followed."""
    if not account.borrowed or folder.stat().st_uid == account.uid:
        return
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(parent, name), account.uid, account.gid, follow_symlinks=False)
    os.chown(folder, account.uid, account.gid)  # last: it marks the whole as given


def _unprivileged() -> Account:
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_uid, entry.pw_gid, borrowed=True)
    raise DatabaseUnavailable(
        "PostgreSQL does not run as root, and this system has neither an account `postgres` nor `nobody`.",
        remedy="Run as an ordinary user, or set DATABASE_URL to a server.",
    )
