"""How large a request may be, how long it may take, and that nobody works for a client that went away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.doors.http import bounds
from engine.doors.http.bounds import BODY_BYTES, HEADER_BYTES, LARGE_BYTES, TARGET_BYTES, Bounds
from tests.asgi import Reply, ask, well
from tests.support import eventually

if TYPE_CHECKING:
    from engine.doors.http.asgi import Receive, Scope, Send

bounded = Bounds(well)


def refused(reply: Reply, status: int) -> bool:
    return reply.status == status and bool(reply.json["detail"]) and reply.headers["connection"] == "close"


async def test_a_body_comes_whole_up_to_its_bound() -> None:
    assert (await ask(bounded, pieces=[b"a" * 10, b"", b"b" * 10])).body == b"20"
    assert (await ask(bounded, pieces=[b"a" * BODY_BYTES])).body == str(BODY_BYTES).encode()


async def test_a_longer_one_is_refused_announced_or_not() -> None:
    assert refused(await ask(bounded, pieces=[b"a" * BODY_BYTES, b"b"]), 413)
    announced = {"content-length": str(BODY_BYTES + 1)}
    assert refused(await ask(bounded, headers=announced, pieces=[b"", b""], stuck=True), 413)
    endless = (b"a" * 1000 for _ in range(BODY_BYTES))
    assert refused(await ask(bounded, pieces=endless), 413)


async def test_a_large_body_comes_where_one_may() -> None:
    turns = Bounds(well, {"/turn"})
    megabyte = [b"a" * 1_000_000]
    for headers in ({"content-length": "1000000"}, {"transfer-encoding": "chunked"}):
        assert (await ask(turns, "/turn", headers=headers, pieces=megabyte)).body == b"1000000"
        assert refused(await ask(turns, "/other", headers=headers, pieces=megabyte), 413)
    announced = {"content-length": str(LARGE_BYTES + 1)}
    assert refused(await ask(turns, "/turn", headers=announced, pieces=[b"", b""], stuck=True), 413)
    much = [*megabyte * 4, b"a" * 200_000]
    assert refused(await ask(turns, "/turn", headers={"transfer-encoding": "chunked"}, pieces=much), 413)


async def test_only_a_few_large_bodies_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_LARGE", 1)
    turns, gone = Bounds(slow := Slow(), {"/turn"}), asyncio.Event()
    large, small = {"content-length": str(BODY_BYTES + 1)}, {"content-length": "2"}
    asking = asyncio.create_task(ask(turns, "/turn", headers=large, gone=gone))
    await eventually(lambda: slow.began)
    crowded = await ask(turns, "/turn", headers=large)
    assert refused(crowded, 503)
    assert crowded.headers["retry-after"] == "2"
    beside = asyncio.create_task(ask(turns, "/turn", headers=small, pieces=[b"{}"], gone=gone))
    gone.set()
    assert ((await asking).status, (await beside).status) == (0, 0)
    assert (turns._open, turns._held) == (0, 0)


async def test_a_long_address_and_long_headers_are_refused() -> None:
    assert refused(await ask(bounded, query="q" * (TARGET_BYTES + 1)), 414)
    assert refused(await ask(bounded, "/" + "p" * TARGET_BYTES), 414)
    assert refused(await ask(bounded, headers={"x": "h" * HEADER_BYTES}), 431)
    assert (await ask(bounded, query="q" * (TARGET_BYTES - 10))).status == 200


async def test_the_longest_question_fits_however_it_is_written() -> None:
    from urllib.parse import quote

    from engine.text.tokens import MAX_QUERY

    assert len(quote("\U0001d518" * MAX_QUERY)) < TARGET_BYTES
    assert len(("\\ud835\\udd18" * MAX_QUERY).encode()) < BODY_BYTES


async def test_a_body_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_SECONDS", 0.01)
    assert refused(await ask(bounded, pieces=[b"a", b"b"], stuck=True), 408)


async def test_who_goes_away_before_the_end_of_the_body_is_not_answered() -> None:
    gone = asyncio.Event()
    gone.set()
    assert (await ask(bounded, pieces=[b"a", b"b"], stuck=True, gone=gone)).status == 0


class Slow:
    """An application that is never ready, and knows what became of it."""

    def __init__(self) -> None:
        self.began = self.ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.began = True
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


async def test_more_than_so_many_at_once_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_OPEN", 2)
    slow, gone = Slow(), asyncio.Event()
    crowded = Bounds(slow)
    asking = [asyncio.create_task(ask(crowded, gone=gone)) for _ in range(2)]
    await eventually(lambda: slow.began)
    third = await ask(crowded)
    assert refused(third, 503)
    assert third.headers["retry-after"] == "2"
    gone.set()
    await asyncio.gather(*asking)
    slow.began = False
    fourth = asyncio.create_task(ask(crowded, gone=gone))
    await eventually(lambda: slow.began)
    await fourth


async def test_the_work_for_a_client_that_went_away_ends() -> None:
    slow, gone = Slow(), asyncio.Event()
    asking = asyncio.create_task(ask(Bounds(slow), gone=gone))
    await eventually(lambda: slow.began)
    gone.set()
    assert (await asking).status == 0
    assert slow.ended


async def test_the_end_of_the_server_ends_the_work_too() -> None:
    slow = Slow()
    asking = asyncio.create_task(ask(Bounds(slow)))
    await eventually(lambda: slow.began)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert slow.ended


async def test_a_client_that_leaves_with_its_answer_cuts_nothing_short() -> None:
    gone, finished = asyncio.Event(), []

    async def thorough(scope: Scope, receive: Receive, send: Send) -> None:
        await well(scope, receive, send)
        gone.set()
        for _ in range(20):  # turns of the loop, in which it is noticed
            await asyncio.sleep(0)
        finished.append(True)

    assert (await ask(Bounds(thorough), gone=gone)).status == 200
    assert finished


async def test_a_fault_of_the_application_is_not_swallowed() -> None:
    async def faulty(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await ask(Bounds(faulty))
