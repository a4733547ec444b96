"""Small helpers that several kinds of tests share."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def eventually(predicate: Callable[[], T | Awaitable[T]], timeout: float = 40) -> T:
    """Wait until `predicate` (plain or async) holds; its value then. Fails after `timeout` seconds."""
    end, pause = time.monotonic() + timeout, 0.005
    while True:
        value = predicate()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return cast("T", value)
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {timeout} s: {inspect.getsource(predicate).strip()}")
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.1)
