"""A tally: a count is kept for as long as it was dear, and never when it must be exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from engine.notes import tally
from engine.notes.tally import PATIENCE, Tally

if TYPE_CHECKING:
    from psycopg import AsyncConnection

CONNECTION = cast("AsyncConnection", object())


class Counted:
    """A clock, and a count that takes `cost` seconds of it to read."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.cost = 2.0
        self.value: int | None = 7
        self.reads: list[Any] = []

    def monotonic(self) -> float:
        return self.now

    async def read(self, connection: AsyncConnection) -> int:
        self.reads.append(connection)
        self.now += self.cost
        if self.value is None:
            raise ConnectionError("the database is away")
        return self.value


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    found = Counted()
    monkeypatch.setattr(tally, "time", found)
    return found


async def test_a_count_is_kept_in_proportion_to_what_it_cost(counted: Counted) -> None:
    kept = Tally(counted.read)
    assert await kept.get(CONNECTION, exact=False) == 7
    counted.value, read_at = 8, counted.now
    counted.now = read_at + PATIENCE * counted.cost - 0.01
    assert await kept.get(CONNECTION, exact=False) == 7
    counted.now = read_at + PATIENCE * counted.cost
    assert await kept.get(CONNECTION, exact=False) == 8
    assert counted.reads == [CONNECTION, CONNECTION]


async def test_reading_takes_a_small_part_of_the_time_however_often_it_is_asked(counted: Counted) -> None:
    kept, start = Tally(counted.read), counted.now
    for _ in range(1000):
        await kept.get(CONNECTION, exact=False)
        counted.now += 1.0
    assert len(counted.reads) * counted.cost <= (counted.now - start) / PATIENCE + counted.cost


async def test_exact_reads_again_and_is_kept_in_place_of_the_old_one(counted: Counted) -> None:
    kept = Tally(counted.read)
    await kept.get(CONNECTION, exact=False)
    counted.value = 8
    assert await kept.get(CONNECTION, exact=True) == 8
    counted.value = 9
    assert await kept.get(CONNECTION, exact=False) == 8
    assert len(counted.reads) == 2


async def test_what_costs_nothing_is_never_old(counted: Counted) -> None:
    kept, counted.cost = Tally(counted.read), 0.0
    for value in (1, 2, 3):
        counted.value = value
        assert await kept.get(CONNECTION, exact=False) == value


async def test_nothing_is_a_count_too(counted: Counted) -> None:
    kept, counted.value = Tally(counted.read), 0
    assert [await kept.get(CONNECTION, exact=False) for _ in range(3)] == [0, 0, 0]
    assert len(counted.reads) == 1


async def test_a_reading_that_fails_is_told_and_the_next_one_tried(counted: Counted) -> None:
    kept, counted.value = Tally(counted.read), None
    with pytest.raises(ConnectionError):
        await kept.get(CONNECTION, exact=False)
    counted.value = 8
    assert await kept.get(CONNECTION, exact=False) == 8
    counted.value = None
    with pytest.raises(ConnectionError):
        await kept.get(CONNECTION, exact=True)
    assert await kept.get(CONNECTION, exact=False) == 8
