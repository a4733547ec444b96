"""What a brain holds, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.memory.model import Metrics

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_COUNTS = """
    SELECT held.packets, held.corrections, held.overwrites, held.recalled,
        (SELECT count(DISTINCT packet) FROM packet_embedding
            WHERE brain = %(brain)s AND state = 'pending'),
        (SELECT count(*) FROM lesson
            WHERE brain = %(brain)s AND deleted_at IS NULL AND (pinned OR expires_at > now())),
        (SELECT count(*) FROM lesson WHERE brain = %(brain)s AND deleted_at IS NOT NULL),
        (SELECT count(*) FROM cluster WHERE brain = %(brain)s AND state = 'waiting'),
        held.unseen,
        (SELECT count(*) FROM channel WHERE brain = %(brain)s),
        held.last,
        (SELECT max(finished_at) FROM synthesis_run WHERE brain = %(brain)s AND state = 'completed'),
        (SELECT avg(coherence) FROM turn_token WHERE brain = %(brain)s)
    FROM (
        SELECT count(*) AS packets, count(*) FILTER (WHERE kind = 'correction') AS corrections,
            count(*) FILTER (WHERE kind = 'overwrite') AS overwrites,
            count(*) FILTER (WHERE recalled) AS recalled,
            count(*) FILTER (WHERE run IS NULL AND NOT recalled AND kind <> 'overwrite') AS unseen,
            max(recorded_at) AS last
        FROM packet WHERE brain = %(brain)s
    ) AS held
"""


async def of(connection: AsyncConnection, brain: int) -> Metrics:
    """The counts of the brain that the transaction has entered."""
    cursor = await connection.execute(_COUNTS, {"brain": brain})
    row = await cursor.fetchone()
    if row is None:
        raise AssertionError("a count is always one row")  # pragma: no cover
    return Metrics(*row)
