"""Subscriptions: bursts coalesce, nothing grows, and they end."""

from __future__ import annotations

import asyncio

import pytest

from engine.database.feed import Subscription
from engine.database.model import RECONNECTED, Change, without_repeats


async def test_a_topic_that_changes_again_before_it_was_read_is_told_once() -> None:
    subscription = Subscription(frozenset({"file", "job"}))
    for _ in range(1000):
        subscription.tell("file")
        subscription.tell("job")
        subscription.tell("embedding")
    assert len(subscription._waiting) == 2
    assert [await anext(subscription), await anext(subscription)] == [Change("file"), Change("job")]
    subscription.tell("file")
    assert await anext(subscription) == Change("file")


async def test_a_return_is_told_to_all_and_all_topics_to_who_named_none() -> None:
    some, every = Subscription(frozenset({"file"})), Subscription(frozenset())
    for topic in ("job", RECONNECTED):
        some.tell(topic)
        every.tell(topic)
    some.end()
    every.end()
    assert [change.topic async for change in some] == [RECONNECTED]
    assert [change.topic async for change in every] == ["job", RECONNECTED]


async def test_closing_ends_a_waiting_reader_at_once() -> None:
    subscription = Subscription(frozenset())
    reader = asyncio.ensure_future(anext(subscription))
    await asyncio.sleep(0)
    await subscription.aclose()
    with pytest.raises(StopAsyncIteration):
        await reader
    subscription.tell("file")
    assert [change async for change in subscription] == []


def test_a_state_is_told_when_it_changes() -> None:
    told: list[str] = []
    tell = without_repeats(told.append)
    for state in ("a", "a", "b", "a"):
        tell(state)
    assert told == ["a", "b", "a"]
