"""Connections: who they are, and what cancelling and losing them does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from engine.database import Database


async def test_works_as_a_role_that_is_neither_superuser_nor_owner(database: Database) -> None:
    async with database.connection() as connection:
        row = await (
            await connection.execute(
                "SELECT current_user::text, rolsuper, rolbypassrls, current_schemas(false)::text[],"
                " EXISTS (SELECT FROM pg_class WHERE relowner = r.oid)"
                " FROM pg_roles r WHERE rolname = current_user"
            )
        ).fetchone()
    assert row == ("noctuary_engine", False, False, ["noctuary", "public"], False)


@pytest.mark.parametrize("number", range(20))
async def test_speed(database: Database, number: int) -> None:
    async with database.connection() as connection:
        await connection.execute("SELECT 1")
