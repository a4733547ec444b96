"""Numbered migrations: each file once, in order, in a transaction, with a checksum for ever.

The caller holds the advisory lock.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.database.connecting import Connection
    from engine.database.model import OnState

FOLDER = Path(__file__).parent / "migrations"

_NAME = re.compile(r"(\d{4})_(\w+)\.sql")
_TABLE = """
CREATE TABLE IF NOT EXISTS noctuary.migration (
    number     integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT USAGE ON SCHEMA noctuary TO noctuary_engine;
GRANT SELECT ON noctuary.migration TO noctuary_engine
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its number, its name, and what it says."""

    number: int
    name: str
    statements: bytes

    @property
    def checksum(self) -> str:
        """sha256 in hex. Line ends do not count: a checkout may have changed them."""
        return hashlib.sha256(self.statements.replace(b"\r\n", b"\n")).hexdigest()


@cache
def load(folder: Path = FOLDER) -> tuple[Migration, ...]:
    """The migrations in `folder`, in order.

    Raises:
        SchemaError: a file has no number, or two have the same.
    """
    found: dict[int, Migration] = {}
    for file in sorted(folder.glob("*.sql")):
        match = _NAME.fullmatch(file.name)
        if match is None:
            raise SchemaError(f"The migration {file.name} is not named like 0001_notes.sql.")
        number = int(match[1])
        if number in found:
            raise SchemaError(
                f"The migrations {found[number].name} and {match[2]} have the same number {number}."
            )
        found[number] = Migration(number, match[2], file.read_bytes())
    return tuple(found[number] for number in sorted(found))


def due(known: Sequence[Migration], applied: Mapping[int, tuple[str, str]]) -> tuple[Migration, ...]:
    """Those of `known` that are not among `applied` (number to name and checksum).

    Raises:
        SchemaError: the database is ahead of this program, or a migration changed after it was applied.
    """
    numbers = {migration.number for migration in known}
    strange = [f"{number} {name}" for number, (name, _) in sorted(applied.items()) if number not in numbers]
    if strange:
        raise SchemaError(
            f"A newer program migrated the database: this one does not know its migration {strange[-1]}.",
            remedy="Upgrade this program: pip install --upgrade noctuary",
        )
    for migration in known:
        name, checksum = applied.get(migration.number, ("", migration.checksum))
        if checksum != migration.checksum:
            raise SchemaError(
                f"The migration {migration.number} {name} is not the one that was applied to the database.",
                remedy="Install an unaltered release of the program.",
            )
    return tuple(migration for migration in known if migration.number not in applied)


async def pending(connection: Connection, folder: Path = FOLDER) -> tuple[Migration, ...]:
    """What `apply` would apply now.

    Raises:
        SchemaError: as for `due`.
    """
    cursor = await connection.execute("SELECT to_regclass('noctuary.migration') IS NOT NULL")
    if await cursor.fetchone() != (True,):
        return load(folder)
    cursor = await connection.execute("SELECT number, name, checksum FROM noctuary.migration")
    applied = {number: (name, checksum) for number, name, checksum in await cursor.fetchall()}
    return due(load(folder), applied)


async def apply(connection: Connection, on_state: OnState, folder: Path = FOLDER) -> int:
    """Bring the schema up to date; the number of migrations applied.

    Raises:
        SchemaError: as for `due`, or a migration's own statement failed; those before it stay.
    """
    await connection.execute(_TABLE)
    waiting = await pending(connection, folder)
    for count, migration in enumerate(waiting, start=1):
        on_state(f"migrating {count} of {len(waiting)}")
        await _apply(connection, migration)
    return len(waiting)


async def _apply(connection: Connection, migration: Migration) -> None:
    import psycopg

    try:
        async with connection.transaction():
            await connection.execute(migration.statements)
            await connection.execute(
                "INSERT INTO noctuary.migration (number, name, checksum) VALUES (%s, %s, %s)",
                [migration.number, migration.name, migration.checksum],
            )
    except psycopg.Error as error:
        raise SchemaError(
            f"The migration {migration.number} {migration.name} failed and was rolled back: {error}.",
            remedy="The database is as it was before it. Please report this.",
        ) from error
