"""The rows of synthesis: runs with their yield, and clusters with what became of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.memory.model import BrainId, Cluster, ClusterState, SynthesisRun
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import AsyncConnection

LONGEST_ERROR = 500
"""Characters of an error that are kept."""

_BEGIN = """
    INSERT INTO synthesis_run (brain, distiller, actor, packets_scanned, clusters, model, prompt_version,
        token_hash, token_expires_at)
    VALUES (%(brain)s, %(distiller)s, %(actor)s, %(scanned)s, %(clusters)s, %(model)s, %(version)s, %(hash)s,
        CASE WHEN %(hash)s::bytea IS NOT NULL THEN now() + make_interval(mins => %(minutes)s) END)
    RETURNING id
"""

_FINISH = """
    UPDATE synthesis_run SET state = %(state)s, error = %(error)s, finished_at = now(), token_hash = NULL
    WHERE brain = %(brain)s AND id = %(run)s
"""

# Whoever holds the brain's synthesis knows that no other process is at a run that is not finished.
_BURY = """
    UPDATE synthesis_run SET state = 'failed', finished_at = now(), token_hash = NULL,
        error = CASE distiller WHEN 'caller' THEN 'Nothing was recorded before its token expired.'
            ELSE 'The process that was at it is gone.' END
    WHERE brain = %s AND state = 'running' AND (distiller <> 'caller' OR token_expires_at <= now())
"""

_TALLY = {
    state: f"UPDATE synthesis_run SET {state} = {state} + 1 WHERE brain = %s AND id = %s"
    for state in ("created", "strengthened", "tombstoned", "nothing", "failed")
}

_RUNS = """
    SELECT run.id, run.brain, core.slug, brain.end_user, run.distiller, run.actor, run.state, run.started_at,
        run.finished_at, run.packets_scanned, run.clusters, run.created, run.strengthened, run.tombstoned,
        run.nothing, run.failed,
        (SELECT count(*) FROM cluster WHERE cluster.brain = run.brain AND cluster.state = 'waiting'),
        run.model, run.error
    FROM synthesis_run AS run JOIN brain ON brain.id = run.brain JOIN core ON core.id = brain.core
    WHERE (%(brain)s::integer IS NULL OR run.brain = %(brain)s)
        AND (%(run)s::integer IS NULL OR run.id = %(run)s)
    ORDER BY run.id DESC LIMIT %(limit)s
"""

_HANDED_OUT = """
    SELECT id FROM synthesis_run
    WHERE brain = %s AND token_hash = %s AND state = 'running' AND token_expires_at > now() FOR UPDATE
"""

_CLUSTERS = """
    SELECT cluster.id, cluster.brain, core.slug, brain.end_user, cluster.run, cluster.state, cluster.packets,
        cluster.corrections, cluster.cohesion, cluster.created_at, cluster.attempts, cluster.error,
        cluster.lesson
    FROM cluster JOIN brain ON brain.id = cluster.brain JOIN core ON core.id = brain.core
    WHERE (%(brain)s::integer IS NULL OR cluster.brain = %(brain)s)
        AND (%(cluster)s::integer IS NULL OR cluster.id = %(cluster)s)
        AND (NOT %(waiting)s OR cluster.state = 'waiting')
    ORDER BY cluster.id LIMIT %(limit)s
"""

_DUE = """
    SELECT id FROM cluster WHERE brain = %s AND state = 'waiting' AND attempts < %s ORDER BY attempts, id
"""
_WAITING = "SELECT count(*) FROM cluster WHERE brain = %s AND state = 'waiting'"
_PACKETS = "SELECT packet FROM cluster_packet WHERE brain = %s AND cluster = %s ORDER BY packet"
_TELLING = """
    SELECT packet.id FROM cluster_packet AS member
    JOIN packet ON packet.brain = member.brain AND packet.id = member.packet
    WHERE member.brain = %s AND member.cluster = %s
    ORDER BY packet.kind = 'correction' DESC, packet.at DESC, packet.id DESC LIMIT %s
"""
_HOLD = "SELECT state, run, lesson FROM cluster WHERE brain = %s AND id = %s FOR UPDATE"

_DECIDE = """
    UPDATE cluster SET state = %(state)s, lesson = %(lesson)s, decided_by = %(by)s, decided_at = now(),
        error = ''
    WHERE brain = %(brain)s AND id = %(cluster)s
"""

_FAIL = """
    UPDATE cluster SET error = %(error)s, attempts = attempts + %(counts)s
    WHERE brain = %(brain)s AND id = %(cluster)s AND state = 'waiting'
"""

_NAMES = """
    SELECT core.slug, brain.end_user FROM brain JOIN core ON core.id = brain.core WHERE brain.id = %s
"""

_NEEDING = """
    SELECT brain FROM packet WHERE run IS NULL AND NOT recalled AND kind <> 'overwrite'
    UNION SELECT brain FROM cluster WHERE state = 'waiting'
    ORDER BY brain
"""


async def begin(
    connection: AsyncConnection,
    brain: BrainId,
    *,
    distiller: str,
    actor: str,
    scanned: int,
    clusters: int,
    model: str = "",
    version: str = "",
    token_hash: bytes | None = None,
    minutes: int = 0,
) -> int:
    """A new run. Returns its id."""
    parameters = {
        "brain": brain,
        "distiller": distiller,
        "actor": actor,
        "scanned": scanned,
        "clusters": clusters,
        "model": model,
        "version": version,
        "hash": token_hash,
        "minutes": minutes,
    }
    row = await (await connection.execute(_BEGIN, parameters)).fetchone()
    assert row is not None  # noqa: S101 - an INSERT gives its row
    return int(row[0])


async def finish(connection: AsyncConnection, brain: BrainId, run: int, error: str = "") -> None:
    """The run is over: completed, or failed with an error."""
    state = "failed" if error else "completed"
    parameters = {"brain": brain, "run": run, "state": state, "error": error[:LONGEST_ERROR]}
    await connection.execute(_FINISH, parameters)


async def bury(connection: AsyncConnection, brain: BrainId) -> None:
    """Runs that nobody will finish any more have failed. The caller holds the brain's synthesis."""
    await connection.execute(_BURY, (brain,))


async def tally(connection: AsyncConnection, brain: BrainId, run: int, what: str) -> None:
    """One more of a run's yield."""
    await connection.execute(_TALLY[what].encode(), (brain, run))


async def runs(
    connection: AsyncConnection, *, limit: int, brain: BrainId | None = None, run: int | None = None
) -> list[SynthesisRun]:
    """Runs of the brain, or of all that the transaction sees, newest first."""
    cursor = await connection.execute(_RUNS, {"brain": brain, "run": run, "limit": limit})
    return [_run(row) for row in await cursor.fetchall()]


async def by_token(connection: AsyncConnection, brain: BrainId, hashed: bytes) -> int | None:
    """The run whose batch a token is of, while it is valid; held until the transaction ends."""
    row = await (await connection.execute(_HANDED_OUT, (brain, hashed))).fetchone()
    return int(row[0]) if row else None


async def clusters(
    connection: AsyncConnection,
    *,
    limit: int = 1,
    brain: BrainId | None = None,
    cluster: int | None = None,
    waiting: bool = True,
) -> list[Cluster]:
    """Clusters of the brain, or of all that the transaction sees, the oldest first."""
    parameters = {"brain": brain, "cluster": cluster, "waiting": waiting, "limit": limit}
    cursor = await connection.execute(_CLUSTERS, parameters)
    return [_cluster(row) for row in await cursor.fetchall()]


async def due(connection: AsyncConnection, brain: BrainId, attempts: int) -> list[int]:
    """Clusters to be distilled: those that failed least often first, and none that failed so often."""
    cursor = await connection.execute(_DUE, (brain, attempts))
    return [row[0] for row in await cursor.fetchall()]


async def waiting(connection: AsyncConnection, brain: BrainId) -> int:
    """How many clusters wait."""
    row = await (await connection.execute(_WAITING, (brain,))).fetchone()
    return int(row[0]) if row else 0


async def packets(connection: AsyncConnection, brain: BrainId, cluster: int) -> list[int]:
    """The packets of a cluster."""
    cursor = await connection.execute(_PACKETS, (brain, cluster))
    return [row[0] for row in await cursor.fetchall()]


async def telling(connection: AsyncConnection, brain: BrainId, cluster: int, limit: int) -> list[int]:
    """The packets that say most of what a cluster is about: corrections first, then the newest."""
    cursor = await connection.execute(_TELLING, (brain, cluster, limit))
    return [row[0] for row in await cursor.fetchall()]


async def hold(
    connection: AsyncConnection, brain: BrainId, cluster: int
) -> tuple[ClusterState, int, int | None] | None:
    """State, run and lesson of a cluster, which nobody else decides until the transaction ends."""
    row = await (await connection.execute(_HOLD, (brain, cluster))).fetchone()
    return (ClusterState(row[0]), row[1], row[2]) if row else None


async def decide(
    connection: AsyncConnection,
    brain: BrainId,
    cluster: int,
    state: ClusterState,
    *,
    lesson: int | None,
    by: str,
) -> None:
    """Keep what became of a cluster."""
    parameters = {"brain": brain, "cluster": cluster, "state": state, "lesson": lesson, "by": by}
    await connection.execute(_DECIDE, parameters)


async def fail(
    connection: AsyncConnection, brain: BrainId, cluster: int, error: str, *, counts: bool = True
) -> None:
    """Keep why a cluster was not distilled; it waits on."""
    parameters = {
        "brain": brain,
        "cluster": cluster,
        "error": error[:LONGEST_ERROR],
        "counts": int(counts),
    }
    await connection.execute(_FAIL, parameters)


async def needing(connection: AsyncConnection) -> list[BrainId]:
    """Brains with something unseen or waiting."""
    cursor = await connection.execute(_NEEDING)
    return [BrainId(row[0]) for row in await cursor.fetchall()]


async def names(connection: AsyncConnection, brain: BrainId) -> tuple[str, str]:
    """Core and end user of a brain, if the transaction sees it."""
    row = await (await connection.execute(_NAMES, (brain,))).fetchone()
    return (row[0], row[1]) if row else ("", "")


def _run(row: Sequence[Any]) -> SynthesisRun:
    run = SynthesisRun(row[0], BrainId(row[1]), *row[2:])
    notes = []
    if run.tombstoned:
        rules = count(run.tombstoned, "rule was", "rules were")
        notes.append(f"{rules} not written: a person had deleted what says the same.")
    if run.failed:
        wait = "it waits" if run.failed == 1 else "they wait"
        notes.append(f"{count(run.failed, 'cluster')} could not be distilled: {wait}, with the reason.")
    return replace(run, notes=tuple(notes))


def _cluster(row: Sequence[Any]) -> Cluster:
    return Cluster(row[0], BrainId(row[1]), row[2], row[3], row[4], ClusterState(row[5]), *row[6:])
