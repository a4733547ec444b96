"""Small helpers that several kinds of tests share."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """This process without root's rights meanwhile. What lies where only root can read is imported before."""
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


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
