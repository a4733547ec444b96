"""What PostgreSQL's control file tells of a data folder whose server does not run."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.database.embedded.cluster import ENVIRONMENT, reached_as

if TYPE_CHECKING:
    from pathlib import Path

    from engine.database.embedded.account import Account

_SECONDS = 10
_STATE = "Database cluster state:"
_COMPLAINT = "pg_controldata: "
_IN_ORDER = frozenset({"shut down", "shut down in recovery"})


@dataclass(frozen=True, slots=True)
class Control:
    """`orderly` is whether the server was shut down in order; `damage` why the file cannot be relied on."""

    orderly: bool
    damage: str = ""


def read_control(folder: Path, programs: Path, account: Account) -> Control | None:
    """What `pg_controldata` says of `folder`; None when it cannot be run there. Nothing is changed."""
    try:
        done = subprocess.run(  # noqa: S603 - a program of our own wheel, and no shell
            [programs / "pg_controldata", "-D", reached_as(folder)],
            check=False,
            capture_output=True,
            cwd=folder,
            env=ENVIRONMENT,
            timeout=_SECONDS,
            **account.identity(),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stderr.decode(errors="replace").partition("\n")[0]
    if words.endswith("Permission denied"):  # a copy made by root, before the start gives it away
        return None
    if words.startswith(_COMPLAINT):  # a wrong checksum is a warning to it, and the end to the server
        return Control(orderly=False, damage=words.removeprefix(_COMPLAINT).partition(": ")[2])
    lines = done.stdout.decode(errors="replace").splitlines()
    states = [line.removeprefix(_STATE).strip() for line in lines if line.startswith(_STATE)]
    return Control(orderly=states[0] in _IN_ORDER) if states else None
