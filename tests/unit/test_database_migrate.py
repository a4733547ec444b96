"""What is to be applied, and when it is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.database.migrate import FOLDER, Migration, due, load
from engine.errors import SchemaError

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO, TEN = (Migration(number, f"m{number}", f"SELECT {number}".encode()) for number in (1, 2, 10))


def applied(*migrations: Migration) -> dict[int, tuple[str, str]]:
    return {migration.number: (migration.name, migration.checksum) for migration in migrations}


def test_the_programs_own_migrations_can_be_read() -> None:
    assert [migration.number for migration in load()] == list(range(1, len(load()) + 1))
    assert len(load()) == len(list(FOLDER.glob("*.sql")))


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        (tmp_path / f"{number:04}_m{number}.sql").write_text(f"SELECT {number}")
    assert load(tmp_path) == (ONE, TWO, TEN)


def test_two_files_of_one_number_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0001_a.sql").touch()
    (tmp_path / "0001_b.sql").touch()
    with pytest.raises(SchemaError, match="a and b have the same number 1"):
        load(tmp_path)


def test_a_file_without_a_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.sql").touch()
    with pytest.raises(SchemaError, match=r"notes\.sql"):
        load(tmp_path)


def test_what_was_applied_is_not_due() -> None:
    assert due([ONE, TWO, TEN], applied(ONE)) == (TWO, TEN)
    assert due([ONE, TWO], applied(ONE, TWO)) == ()


def test_a_newer_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"newer program .* 10 m10") as caught:
        due([ONE, TWO], applied(ONE, TWO, TEN))
    assert "Upgrade" in caught.value.remedy


def test_an_altered_migration_is_refused() -> None:
    altered = Migration(1, "m1", b"SELECT 'other'")
    with pytest.raises(SchemaError, match="1 m1 is not the one that was applied"):
        due([altered, TWO], applied(ONE))


def test_line_ends_do_not_count() -> None:
    assert Migration(1, "m", b"a\r\nb\r\n").checksum == Migration(1, "m", b"a\nb\n").checksum
    assert Migration(1, "m", b"a\nb\n").checksum != Migration(1, "m", b"a b\n").checksum
