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
    if facts.vector is None:
        await _create_extension(connection, address)
    if not facts.role:
        await _create_role(connection, address, missing=facts.role is None)
    if not facts.schema:
        await _create_schema(connection, address)
    facts = await read_facts(connection, embedded=address.embedded)
    if facts.vector_schema not in {"", "public", SCHEMA}:
        await connection.execute(
            "SELECT set_config('search_path', current_setting('search_path') || ',' || %s, false)",
            [facts.vector_schema],
        )
    await migrate.apply(connection, on_state)
    return facts  # closing the connection lets the lock go


async def _create_extension(connection: Connection, address: Address) -> None:
    statement = "CREATE EXTENSION IF NOT EXISTS vector"
    try:
        await connection.execute(statement)
    except psycopg.Error as error:
        raise _needs_admin(address, "pgvector cannot be enabled", error, f"{statement};") from error


async def _create_role(connection: Connection, address: Address, *, missing: bool) -> None:
    role = sql.Identifier(ENGINE)
    login = sql.SQL("LOGIN" if address.embedded else "NOLOGIN")
    try:
        if missing:
            # Roles are shared by all databases, our lock is not: another program may be as quick.
            with suppress(psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation):
                await connection.execute(sql.SQL("CREATE ROLE {} {}").format(role, login))
        if address.embedded:
            await connection.execute(sql.SQL("ALTER ROLE {} {}").format(role, login))
        else:
            await connection.execute(sql.SQL("GRANT {} TO SESSION_USER").format(role))
    except psycopg.Error as error:
        user = connection.info.user
        statements = f'CREATE ROLE {ENGINE} NOLOGIN; GRANT {ENGINE} TO "{user}";'
        raise _needs_admin(address, f"The role {ENGINE} cannot be set up", error, statements) from error


async def _create_schema(connection: Connection, address: Address) -> None:
    schema = sql.Identifier(SCHEMA)
    try:
        async with connection.transaction():
            await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
            await connection.execute(
                sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(schema, sql.Identifier(ENGINE))
            )
    except psycopg.Error as error:
        database, user = connection.info.dbname, connection.info.user
        statement = f'GRANT CREATE ON DATABASE "{database}" TO "{user}";'
        raise _needs_admin(address, f"The schema {SCHEMA} cannot be created", error, statement) from error


def _needs_admin(address: Address, what: str, error: psycopg.Error, statements: str) -> DatabaseRefused:
    reason = error.diag.message_primary or type(error).__name__
    return DatabaseRefused(
        f"{what} at {address.where}: {reason}.",
        remedy=f"Let an administrator run in that database: {statements}",
    )
