"""Which servers are refused, and what the refusal says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.database.address import Address
from engine.database.check import Facts, judge, numbers
from engine.errors import DatabaseRefused

HERE = Address.of_url("postgresql://ann:secret@db.example/notes")
GOOD = Facts(
    server_number=150004,
    server="15.4 (Debian 15.4-1)",
    encoding="UTF8",
    read_only=False,
    login="ann",
    vector="0.8.4",
    vector_schema="public",
    vector_offered="0.8.4",
    role=True,
    role_mighty=False,
    schema=True,
)


@pytest.mark.parametrize("vector", ["0.8.4", "0.8.5", "0.8.10", "0.10.0", "1.0"])
def test_good_servers_are_taken_in_silence(vector: str) -> None:
    assert judge(replace(GOOD, vector=vector), HERE) == ()
    assert judge(replace(GOOD, vector=None, vector_offered=vector), HERE) == ()


@pytest.mark.parametrize("vector", ["0.7.0", "0.7.4", "0.8.0", "0.8.3"])
def test_faulty_pgvector_is_taken_with_a_warning(vector: str) -> None:
    (warning,) = judge(replace(GOOD, vector=vector), HERE)
    assert vector in warning
    assert "0.8.4" in warning


@pytest.mark.parametrize(
    ("change", "message", "remedy"),
    [
        ({"server_number": 140011, "server": "14.11"}, "PostgreSQL 14.11; 15 or newer", "unset DATABASE_URL"),
        ({"encoding": "SQL_ASCII"}, "encoding SQL_ASCII; UTF8", "ENCODING 'UTF8'"),
        ({"encoding": "LATIN1"}, "encoding LATIN1; UTF8", "ENCODING 'UTF8'"),
        ({"read_only": True}, "read-only", "primary"),
        ({"login": "noctuary_engine"}, "must not own", "another role"),
        ({"role_mighty": True}, "row-level security", "NOBYPASSRLS"),
        (
            {"vector": None, "vector_offered": None},
            "does not have the extension pgvector",
            "postgresql-15-pgvector",
        ),
        (
            {"vector": "0.6.2", "vector_offered": "0.6.2"},
            "pgvector at .* is 0.6.2",
            "Upgrade it on the server",
        ),
        (
            {"vector": "0.5.1", "vector_offered": "0.8.5"},
            "pgvector at .* is 0.5.1",
            "ALTER EXTENSION vector UPDATE",
        ),
        ({"vector": None, "vector_offered": "0.6.0"}, "pgvector at .* is 0.6.0", "Upgrade it on the server"),
    ],
)
def test_a_refusal_says_where_why_and_what_to_do(change: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(DatabaseRefused, match=message) as caught:
        judge(replace(GOOD, **change), HERE)
    assert "ann@db.example/notes" in caught.value.message
    assert remedy in caught.value.remedy
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"), [("0.8.5", (0, 8, 5)), ("0.10", (0, 10)), ("0.8.0-dev", (0, 8, 0)), ("", ())]
)
def test_versions_are_compared_by_number(text: str, expected: tuple[int, ...]) -> None:
    assert numbers(text) == expected
