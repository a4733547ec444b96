"""`noctuary jobs` and `retry`: the queue, and what failed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.doors.finishing import finish
from engine.notes.model import JobId, JobStatus, PassageId

if TYPE_CHECKING:
    from engine import Engine
    from engine.notes.model import Job, JobCounts

VECTORS = "vectors"
"""Stands among the statuses for the passages the model could not embed."""

LARGEST_ID = 2**63 - 1
"""Ids are 64-bit in the database."""


@click.command()
@click.option(
    "--status",
    type=click.Choice([*(str(status) for status in JobStatus), VECTORS]),
    help="Only these; `vectors` lists the passages the model could not embed.",
)
@click.option(
    "--filter", "text", type=parameters.TEXT, metavar="TEXT", help="Only paths or errors that contain this."
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="How many at most."
)
@parameters.JSON
def jobs(status: str | None, text: str | None, limit: int, *, as_json: bool) -> int:
    """Show the job queue, newest first, each error in full."""

    async def work(engine: Engine) -> int:
        if status == VECTORS:
            return await _vectors(engine, text or "", limit, as_json=as_json)
        wanted = None if status is None else JobStatus(status)
        counts = await engine.notes.job_counts()
        found = await engine.notes.jobs(status=wanted, text=text or "", limit=limit)
        if as_json:
            output.dump({"counts": counts, "jobs": found})
        else:
            _print(counts, found)
        return exits.DONE

    return session.run(work, application="noctuary jobs")


async def _vectors(engine: Engine, text: str, limit: int, *, as_json: bool) -> int:
    """The passages without a vector, each error in full."""
    found = await engine.notes.failed_passages(text=text, limit=limit)
    total = await engine.notes.failed_passage_count()
    if as_json:
        output.dump({"failed": total, "passages": found})
        return exits.DONE
    output.say(f"{total:,} without a vector: the model could not embed them; their words are found.")
    for passage in found:
        output.say(f"{passage.id}: {passage.reference}: {passage.error}")
    return exits.DONE


def _print(counts: JobCounts, found: list[Job]) -> None:
    output.say(
        f"{counts.pending:,} pending, {counts.processing:,} processing, {counts.done:,} done, "
        f"{counts.failed:,} failed; {counts.rate:.1f} jobs/s"
    )
    if not found:
        return
    output.table([(str(job.id), str(job.status), str(job.kind), job.path) for job in found])
    for job in found:
        if job.error:
            output.say(f"{job.id}: {job.error}")


@click.command()
@click.option("--vectors", is_flag=True, help="Passages the model could not embed, in place of jobs.")
@click.argument("ids", nargs=-1, type=click.IntRange(1, LARGEST_ID), metavar="[ID]...")
@parameters.JSON
def retry(ids: tuple[int, ...], *, vectors: bool, as_json: bool) -> int:
    """Queue failed jobs again and work them off.

    All of them, or those named by ID. Exit status 2 when an ID is of none that failed (then nothing is
    queued), or when any is still failed afterwards.
    """

    async def work(engine: Engine) -> int:
        notes = engine.notes
        if vectors:
            queued = await notes.retry_passages([PassageId(one) for one in ids] or None, strict=True)
        else:
            queued = await notes.retry([JobId(one) for one in ids] or None, strict=True)
        return await finish(engine, queued, embed=True, as_json=as_json)

    return session.run(work, application="noctuary retry")
