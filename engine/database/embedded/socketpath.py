"""A name for the server's socket folder that fits the 104 bytes a socket path may have.

The server binds its socket as `./.s.PGSQL.5432` inside its data folder, so only clients need a
full path. Where the folder's own is too long or holds what libpq would take apart, it is reached
through a descriptor (Linux) or a link in a private folder (elsewhere).
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from engine.errors import DatabaseUnavailable

SOCKET = ".s.PGSQL.5432"
"""The socket's name in the data folder."""

_LONGEST = 103 - len(f"/{SOCKET}")
_DESCRIPTORS = Path("/proc/self/fd")


class SocketFolder:
    """The data folder as a client names it. Valid until `close`, in this process."""

    def __init__(self, folder: Path) -> None:
        self._descriptor = -1
        if fits(folder):
            self.host = str(folder)
        elif _DESCRIPTORS.exists():
            self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self.host = str(_DESCRIPTORS / str(self._descriptor))
        else:
            self.host = str(link_to(folder))

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def fits(folder: Path) -> bool:
    """Whether `folder` can be given to libpq as it is: absolute, short, no comma, valid UTF-8."""
    raw = os.fsencode(folder)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return False
    return text.startswith("/") and "," not in text and len(raw) <= _LONGEST


def check_reachable(folder: Path) -> None:
    """See whether the socket of `folder` could be named; nothing is made for it.

    Raises:
        DatabaseUnavailable: somebody else prepared the folder in which a link would lie.
    """
    if not fits(folder) and not _DESCRIPTORS.exists() and os.path.lexists(_private()):
        _check_private(_private())


def link_to(folder: Path) -> Path:
    """A short link to `folder`, in a folder under the temporary one that is ours alone.

    Raises:
        DatabaseUnavailable: somebody else prepared that folder.
    """
    private = _private()
    private.mkdir(mode=0o700, exist_ok=True)
    _check_private(private)
    link = private / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    making = link.with_suffix(f".{os.getpid()}")
    making.unlink(missing_ok=True)
    making.symlink_to(folder)
    making.replace(link)
    return link


def _private() -> Path:
    return Path(tempfile.gettempdir()) / f"noctuary-{os.geteuid()}"


def _check_private(private: Path) -> None:
    status = private.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise DatabaseUnavailable(
            f"{private} is not a folder of yours alone, so no socket is trusted there.",
            remedy=f"Remove {private}, or set XDG_DATA_HOME to a shorter path.",
        )
