"""Whether a server can be used, and if not, the sentence that says why and what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.database.address import ENGINE, Address
from engine.errors import DatabaseRefused

if TYPE_CHECKING:
    from engine.database.connecting import Connection

OLDEST_SERVER = 150000
OLDEST_VECTOR = (0, 7)
SOUND_VECTOR = (0, 8, 4)

_SET_IS_A_RIGHT = 160000


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on the server. `role` is None while the engine role is missing; else whether
    this login may take it on.
    """

    server_number: int
    server: str
    encoding: str
    read_only: bool
    login: str
    vector: str | None
    vector_schema: str
    vector_offered: str | None
    role: bool | None
    role_mighty: bool
    schema: bool


_FACTS = """
SELECT current_setting('server_version_num')::int,
       current_setting('server_version'),
       current_setting('server_encoding'),
       current_setting('transaction_read_only')::bool,
       session_user::text,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
       coalesce((SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
                 WHERE extname = 'vector'), ''),
       (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
       (SELECT pg_has_role(session_user, oid, %(take)s) AND (rolcanlogin OR NOT %(login)s)
        FROM pg_roles WHERE rolname = %(engine)s),
       coalesce((SELECT rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles
                 WHERE rolname = %(engine)s), false),
       EXISTS (SELECT FROM pg_namespace WHERE nspname = 'noctuary')
"""


async def read_facts(connection: Connection, *, embedded: bool) -> Facts:
    """One round trip for everything `judge` needs."""
    # Since 16, being a member and being allowed to take a role on are two things.
    take = "SET" if connection.info.server_version >= _SET_IS_A_RIGHT else "MEMBER"
    cursor = await connection.execute(_FACTS, {"take": take, "login": embedded, "engine": ENGINE})
    row = await cursor.fetchone()
    if row is None:
        raise DatabaseRefused("The server does not tell its version.")
    return Facts(*row)


def judge(facts: Facts, address: Address) -> tuple[str, ...]:
    """Warnings on what works, but less well than it could.

    Raises:
        DatabaseRefused: something that is needed is missing.
    """
    where = address.where
    if facts.server_number < OLDEST_SERVER:
        raise DatabaseRefused(
            f"The server at {where} is PostgreSQL {facts.server}; 15 or newer is needed.",
            remedy="Upgrade it, or unset DATABASE_URL to use the server that comes with the program.",
        )
    if facts.encoding != "UTF8":
        raise DatabaseRefused(
            f"The database at {where} has the encoding {facts.encoding}; UTF8 is needed.",
            remedy="Create one with: CREATE DATABASE noctuary TEMPLATE template0 ENCODING 'UTF8';",
        )
    if facts.read_only:
        raise DatabaseRefused(
            f"The database at {where} is read-only.", remedy="Let DATABASE_URL name the primary server."
        )
    _judge_role(facts, where)
    return _judge_vector(facts, where)


def _judge_role(facts: Facts, where: str) -> None:
    if facts.login == ENGINE:
        raise DatabaseRefused(
            f"DATABASE_URL logs in at {where} as {ENGINE}, which must not own the tables it works on.",
            remedy="Log in as another role, which may create a schema in that database.",
        )
    if facts.role_mighty:
        raise DatabaseRefused(
            f"The role {ENGINE} at {where} has rights that undo row-level security.",
            remedy=f"Let an administrator run: ALTER ROLE {ENGINE} NOSUPERUSER NOBYPASSRLS NOCREATEROLE;",
        )


def _judge_vector(facts: Facts, where: str) -> tuple[str, ...]:
    version = facts.vector or facts.vector_offered
    if version is None:
        raise DatabaseRefused(
            f"The server at {where} does not have the extension pgvector.",
            remedy=f"Install postgresql-{facts.server_number // 10000}-pgvector there, 0.7 or newer.",
        )
    if numbers(version) < OLDEST_VECTOR:
        offered = numbers(facts.vector_offered or "")
        remedy = (
            "Let an administrator run in that database: ALTER EXTENSION vector UPDATE;"
            if offered >= OLDEST_VECTOR
            else "Upgrade it on the server."
        )
        raise DatabaseRefused(f"pgvector at {where} is {version}; 0.7 or newer is needed.", remedy=remedy)
    if numbers(version) < SOUND_VECTOR:
        return (f"pgvector {version} has faults in its indexes that 0.8.4 repaired: upgrade it.",)
    return ()


def numbers(version: str) -> tuple[int, ...]:
    """`0.8.5` as (0, 8, 5); what is no number ends it."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


async def locale_warnings(connection: Connection) -> tuple[str, ...]:
    """A warning when the database's locale knows ASCII letters only."""
    row = await (await connection.execute("SELECT lower('Ä') = 'ä'")).fetchone()
    if row and row[0]:
        return ()
    return ("The database's locale knows ASCII letters only: others keep their case when compared.",)
