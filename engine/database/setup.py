"""Brings a database to the state this program works on: extension, role, schema, migrations."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import psycopg
from psycopg import sql

from engine.database import migrate
from engine.database.address import ENGINE, SCHEMA, Address
from engine.database.check import Facts, judge, locale_warnings, read_facts
from engine.database.connecting import Connection, connect
from engine.database.model import DatabaseInfo, OnState
from engine.errors import DatabaseRefused

_LOCK = "SELECT pg_advisory_lock(hashtextextended('noctuary migrations', 0))"
_TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended('noctuary migrations', 0))"


async def prepare(address: Address, application: str, on_state: OnState) -> tuple[Address, DatabaseInfo]:
    """Check the database at `address` and set it up as far as needed.

    Returns the address completed with the schema of pgvector, and what the server is.

    Raises:
        DatabaseUnavailable: it cannot be reached.
        DatabaseRefused: it cannot be used.
        SchemaError: its schema is not one of this program's.
    """
    connection = await connect(address, address.admin(application), on_state=on_state)
    async with connection:
        facts = await read_facts(connection, embedded=address.embedded)
        warnings = judge(facts, address)
        if not _complete(facts) or await migrate.pending(connection):
            facts = await _set_up(connection, address, on_state)
        warnings += await locale_warnings(connection)
    schema = "" if facts.vector_schema in {"public", SCHEMA} else facts.vector_schema
    info = DatabaseInfo(
        version=facts.server.split(" ")[0],
        pgvector=facts.vector or "",
        embedded=address.embedded,
        location=address.where,
        warnings=warnings,
    )
    return replace(address, extra_schema=schema), info


def _complete(facts: Facts) -> bool:
    return facts.vector is not None and bool(facts.role) and facts.schema


async def _set_up(connection: Connection, address: Address, on_state: OnState) -> Facts:
    """All steps under one lock: of several programs that start at once, one works, the others wait."""
    cursor = await connection.execute(_TRY_LOCK)
    if await cursor.fetchone() != (True,):
        on_state("waiting for another process that sets up the database")
        await connection.execute(_LOCK)
    facts = await read_facts(connection, embedded=address.embedded)
    lacking: list[str] = []
    if facts.vector is None:
        lacking += await _create_extension(connection)
    if not facts.role:
        lacking += await _create_role(connection, embedded=address.embedded, missing=facts.role is None)
    if not facts.schema:
        lacking += await _create_schema(connection)
    if lacking:
        raise DatabaseRefused(
            f"The login {connection.info.user} may not set the database at {address.where} up.",
            remedy=f"Let an administrator run in that database: {' '.join(lacking)}",
        )
    facts = await read_facts(connection, embedded=address.embedded)
    if facts.vector_schema not in {"", "public", SCHEMA}:
        await connection.execute(
            "SELECT set_config('search_path', current_setting('search_path') || ',' || %s, false)",
            [facts.vector_schema],
        )
    await migrate.apply(connection, on_state)
    return facts  # closing the connection lets the lock go


async def _create_extension(connection: Connection) -> list[str]:
    """Statements an administrator must run for this step, as for the steps below; mostly none."""
    try:
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.InsufficientPrivilege:
        return ["CREATE EXTENSION vector;"]
    return []


async def _create_role(connection: Connection, *, embedded: bool, missing: bool) -> list[str]:
    role = sql.Identifier(ENGINE)
    login = sql.SQL("LOGIN" if embedded else "NOLOGIN")
    lacking = []
    if missing:
        try:
            # Roles are shared by all databases, our lock is not: another program may be as quick.
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                await connection.execute(sql.SQL("CREATE ROLE {} {}").format(role, login))
        except psycopg.errors.InsufficientPrivilege:
            lacking.append(f"CREATE ROLE {ENGINE} NOLOGIN;")
    try:
        if embedded:
            await connection.execute(sql.SQL("ALTER ROLE {} {}").format(role, login))
        else:
            await connection.execute(sql.SQL("GRANT {} TO SESSION_USER").format(role))
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedObject):
        lacking.append(f"GRANT {ENGINE} TO {_quoted(connection.info.user)};")
    return lacking


async def _create_schema(connection: Connection) -> list[str]:
    try:
        await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
    except psycopg.errors.InsufficientPrivilege:
        info = connection.info
        return [f"GRANT CREATE ON DATABASE {_quoted(info.dbname)} TO {_quoted(info.user)};"]
    return []


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
