"""Notifications as they arrive, with nothing done while none does.

The driver's own iterator looks at the connection ten times a second; an idle console shall not.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from engine.database.connecting import Connection


async def arrivals(connection: Connection) -> AsyncIterator[str]:
    """The payload of each notification on a connection that nothing else uses.

    Raises:
        psycopg.OperationalError: the connection came to its end.
    """
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    descriptor = connection.fileno()
    loop.add_reader(descriptor, readable.set)
    try:
        while True:
            readable.clear()
            connection.pgconn.consume_input()
            while notice := connection.pgconn.notifies():
                yield notice.extra.decode()
            await readable.wait()
    finally:
        loop.remove_reader(descriptor)
