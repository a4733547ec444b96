"""Where this installation keeps its things: the XDG folders of the user, one `noctuary` in each.

A fresh set of XDG folders is a fresh installation. Reading a path makes its folder, for the user
alone (0700); `locations()` only tells where they would be.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import FolderError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

APPLICATION = "noctuary"
CONFIG_FILE = "config.toml"
_VARIABLES = {
    "data": "XDG_DATA_HOME",
    "config": "XDG_CONFIG_HOME",
    "state": "XDG_STATE_HOME",
    "cache": "XDG_CACHE_HOME",
}


def is_folder(path: Path) -> bool:
    """Whether a folder is there, as far as can be seen: `Path.is_dir` raises where there is no right to look,
    and for a name that is too long for the disk.
    """
    return os.path.isdir(path)  # noqa: PTH112


@dataclass(frozen=True, slots=True)
class Paths:
    """The four folders. The properties make a folder when they are first read."""

    data_at: Path
    config_at: Path
    state_at: Path
    cache_at: Path

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Paths:
        """The folders that an environment asks for; nothing is made.

        Raises:
            SettingsError: an XDG variable holds a relative path.
        """
        found = {name: _base(env, name, variable) for name, variable in _VARIABLES.items()}
        return cls(found["data"], found["config"], found["state"], found["cache"])

    @property
    def data(self) -> Path:
        """The embedded database."""
        return _private(self.data_at)

    @property
    def config(self) -> Path:
        """config.toml."""
        return _private(self.config_at)

    @property
    def state(self) -> Path:
        """Logs and histories."""
        return _private(self.state_at)

    @property
    def cache(self) -> Path:
        """What can be made again."""
        return _private(self.cache_at)

    @property
    def config_file(self) -> Path:
        """The settings file, which need not exist; its folder is not made."""
        return self.config_at / CONFIG_FILE

    def locations(self) -> dict[str, Path]:
        """Name to path, without making anything."""
        return {
            "data": self.data_at,
            "config": self.config_at,
            "state": self.state_at,
            "cache": self.cache_at,
        }


def expanded(path: Path) -> Path:
    """A path that somebody typed, with `~` and `~user` replaced by the home folder.

    Raises:
        FolderError: there is no such user, or the path is none a system can have.
    """
    if "\0" in str(path):
        raise FolderError(f"{str(path)!r} is no path: it holds a NUL.", remedy="Type it again.")
    try:
        return path.expanduser()
    except RuntimeError as error:  # pathlib's word for it
        raise FolderError(
            f"{path} names a home folder that is not known.", remedy="Check the user's name, or write it out."
        ) from error


def real(path: Path) -> Path:
    """The same, absolute and without links; unlike `Path.resolve` it bears a loop of links.

    Raises:
        FolderError: as `expanded`.
    """
    return Path(os.path.realpath(expanded(path)))


def _base(env: Mapping[str, str], name: str, variable: str) -> Path:
    value = env.get(variable, "")
    if not value:
        import platformdirs

        return Path(getattr(platformdirs, f"user_{name}_dir")(APPLICATION, appauthor=False))
    if not Path(value).is_absolute():
        raise SettingsError(
            f"{variable} is '{value}', which is a relative path.",
            remedy="Give it an absolute path or unset it.",
        )
    return Path(value) / APPLICATION


def _private(path: Path) -> Path:
    """Make a folder and what is missing above it, for the user alone."""
    try:
        if path.is_dir():
            return path
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not path.is_dir():
            raise NotADirectoryError(f"{path} is not a folder")
    except OSError as error:
        raise SettingsError(
            f"The folder {path} cannot be made: {error.strerror or error}.",
            remedy="Free the path or set another XDG folder; `noctuary locate` lists them.",
        ) from error
    return path
