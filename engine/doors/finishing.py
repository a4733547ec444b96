"""Queued work done to its end in this process, and the state of things in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.doors import exits, output
from engine.doors.progress import Progress
from engine.text.amounts import count, duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.errors import NoctuaryError
    from engine.notes.model import EmbeddingProgress, NotesStatus


FAILED = "`noctuary jobs --status failed` shows why, `noctuary retry` tries again."


async def finish(
    engine: Engine, queued: int, *, embed: bool, as_json: bool, errors: Sequence[NoctuaryError] = ()
) -> int:
    """Work until nothing is left, together with any other process that works, and sum it up.

    The exit status is that of an error when `errors` kept folders away, or anything has failed.
    """
    with Progress(embed=embed) as progress:
        progress(await engine.notes.status())
        await engine.notes.work_until_idle(progress, embed=embed)
        status = await engine.notes.status()
        progress(status)
    if as_json:
        output.dump({"queued": queued, **summary(status)})
    else:
        output.say(
            f"{count(queued, 'job')} queued and worked off." if queued else "Nothing was to be queued."
        )
        for line in sentences(status):
            if line != FAILED:  # that is said below
                output.say(line)
    return _status(status, errors)


def _status(status: NotesStatus, errors: Sequence[NoctuaryError]) -> int:
    """The exit status, with a complaint on standard error for whatever makes it one."""
    for error in errors:
        output.complain(error.title, error.message, error.remedy)
    jobs, vectors = status.jobs.failed, status.embedding.failed if status.embedding else 0
    if jobs:
        output.complain("Notes", f"{count(jobs, 'job')} failed.", FAILED)
    if vectors:
        output.complain(
            "Model", f"{count(vectors, 'passage')} got no vector.", "`noctuary retry` tries again."
        )
    return exits.ERROR if errors or jobs or vectors else exits.DONE


def summary(status: NotesStatus) -> dict[str, Any]:
    """The state of the notes for JSON."""
    return {
        "index": status.index,
        "jobs": status.jobs,
        "embedding": status.embedding,
        "watchers": status.watchers,
        "faults": status.faults,
    }


def sentences(status: NotesStatus) -> list[str]:
    """The state of the notes in a few lines."""
    lines = []
    if status.index is not None:
        index = status.index
        lines.append(
            f"Index: {count(index.files, 'file')} in {count(index.folders, 'folder')}, "
            f"{count(index.chunks, 'chunk')}, {count(index.passages, 'passage')}."
        )
    jobs = status.jobs
    lines.append(
        f"Jobs: {jobs.pending:,} pending, {jobs.processing:,} processing, {jobs.done:,} done, "
        f"{jobs.failed:,} failed."
    )
    if jobs.failed:
        lines.append(FAILED)
    if status.embedding is not None:
        lines.append(_embedding(status.embedding))
        if status.embedding.trouble:
            lines.append(f"The model makes no vectors: {status.embedding.trouble}")
        if status.embedding.suggestion:
            lines.append(status.embedding.suggestion)
    lines.extend(f"Background service down ({fault.service}): {fault.reason}" for fault in status.faults)
    return lines


def _embedding(progress: EmbeddingProgress) -> str:
    sentence = f"Vectors of {progress.model}: {progress.embedded:,} of {progress.total:,}"
    if progress.failed:
        sentence += f", {progress.failed:,} failed"
    if progress.seconds_left is not None and progress.pending:
        sentence += f", about {duration(progress.seconds_left)} left"
    if progress.serving:
        sentence += f"; until then {progress.serving} answers"
    return sentence + "."
