"""What becomes of one cluster, once a rule was given for it: in one transaction, and once only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.memory import lesson_changes as changes
from engine.memory import synthesis_rows as rows
from engine.memory.learning import Rule, learn
from engine.memory.lesson_changes import LARGEST_ID
from engine.memory.model import ClusterState, Distilled

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from engine.memory.lesson_changes import Doing
    from engine.memory.lessons import Lessons
    from engine.memory.meaning import Meant
    from engine.memory.model import BrainId

GONE = "There is no such cluster here."
DECIDED = "It was decided already."


async def decide(
    connection: AsyncConnection,
    brain: BrainId,
    cluster: int,
    rule: tuple[str, Meant | None] | None,
    doing: Doing,
    *,
    lessons: Lessons,
    run: int | None = None,
) -> Distilled:
    """Make the rule a lesson, or with None keep that the cluster holds nothing durable.

    `rule` is its text (cleaned) and what it means; `run` is the one whose yield it counts to, or else the one
    that made the cluster. A cluster that is not there, that was decided, or that was made after the run, is
    left as it is.
    """
    await changes.lock(connection, brain)  # before the cluster: who decides several takes them in any order
    held = await rows.hold(connection, brain, cluster)
    if held is None or (run is not None and held[1] > run):
        return Distilled(cluster, ClusterState.WAITING, None, GONE)
    state, made_by, lesson = held
    if state is not ClusterState.WAITING:
        return Distilled(cluster, state, lesson, DECIDED)
    run = run or made_by
    outcome = Distilled(cluster, ClusterState.NOTHING)
    if rule is not None:
        packets = await rows.packets(connection, brain, cluster)
        learnt = await learn(connection, brain, Rule(*rule, packets, run), doing, lessons.models())
        outcome = Distilled(cluster, learnt.state, learnt.lesson, learnt.note)
    by = changes.shown(doing.actor, changes.LONGEST_ACTOR)
    await rows.decide(connection, brain, cluster, outcome.state, lesson=outcome.lesson, by=by)
    await rows.tally(connection, brain, run, outcome.state)
    return outcome


def is_id(number: int) -> bool:
    """Whether a number from outside can be the id of a row."""
    return 0 < number <= LARGEST_ID
