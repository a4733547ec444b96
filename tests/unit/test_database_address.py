"""Addresses: what is logged in with, and what may be shown."""

from __future__ import annotations

import pytest

from engine.database.address import Address
from engine.errors import DatabaseRefused

SECRET = "hunter2-geheim"


def test_a_password_is_in_the_parameters_and_nowhere_else() -> None:
    address = Address.of_url(f"postgresql://ann:{SECRET}@db.example:6432/notes?sslmode=require")
    assert address.where == "ann@db.example:6432/notes"
    assert address.engine("x")["password"] == SECRET
    assert SECRET not in repr(address)
    assert address.scrub(f"bad {SECRET}!") == "bad ***!"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ann:{SECRET}@[::1",
        f"ann:{SECRET}@db.example",
        f"mysql://ann:{SECRET}@db/x",
        "",
        "  ",
        "notes",
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(DatabaseRefused) as caught:
        Address.of_url(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert "postgresql://" in caught.value.remedy


def test_the_engine_role_is_part_of_the_start_of_a_session() -> None:
    elsewhere = Address.of_url("postgresql+psycopg://ann@db/notes?options=-c%20statement_timeout%3D9s")
    options = elsewhere.engine("x")["options"]
    assert options.startswith("-c statement_timeout=9s ")
    assert options.endswith("-c role=noctuary_engine")
    assert "role=" not in elsewhere.admin("x")["options"]
    embedded = Address.of_folder("/data", "/data", "noctuary")
    assert embedded.engine("x")["user"] == "noctuary_engine"
    assert embedded.admin("x")["user"] == "noctuary_admin"


def test_the_schema_of_pgvector_is_searched_too() -> None:
    address = Address("here", embedded=False, params={}, extra_schema='"my ext"')
    assert r"search_path=noctuary,public,\"my\ ext\"".replace('\\"', '"') in address.engine("x")["options"]
