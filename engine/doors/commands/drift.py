"""`noctuary drift`: where index and disk differ, by cause, and the repair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.doors.finishing import finish
from engine.text.amounts import count

if TYPE_CHECKING:
    from engine import Engine
    from engine.notes.model import DriftReport


@click.command()
@click.argument("paths", nargs=-1, type=parameters.PATH_AS_TYPED, metavar="[PATH]...")
@click.option("--repair", is_flag=True, help="Queue what mends it, and work that off.")
@parameters.JSON
def drift(paths: tuple[str, ...], *, repair: bool, as_json: bool) -> int:
    """Show or repair where index and disk differ.

    With PATHs, as the list shows them or as on the disk, only what lies at or below them. With --json
    and --repair the answer tells what was repaired.
    """

    async def work(engine: Engine) -> int:
        shown = await engine.notes.drift(paths)
        if not repair:
            _show(shown, as_json=as_json)
            return exits.DONE
        if not as_json:
            _show(shown, as_json=False)
        queued = await engine.notes.repair([row.key for row in shown.rows] if paths else None)
        return await finish(engine, queued, embed=True, as_json=as_json)

    return session.run(work, application="noctuary drift")


def _show(report: DriftReport, *, as_json: bool) -> None:
    if as_json:
        output.dump(
            {
                "at": report.at,
                "files_on_disk": report.files_on_disk,
                "files_in_index": report.files_in_index,
                "seconds": report.seconds,
                "counts": report.counts(),
                "rows": report.rows,
                "problems": report.problems,
            }
        )
        return
    output.say(
        f"{count(report.files_on_disk, 'file')} on the disk, {report.files_in_index:,} in the index, "
        f"compared in {report.seconds:.2f} s."
    )
    for problem in report.problems:
        output.say(f"{problem.folder}: {problem.reason}")
    if not report.rows:
        output.say("No drift.")
        return
    output.say(
        ", ".join(f"{number:,} {_words(cause)}" for cause, number in report.counts().items() if number)
    )
    output.table([(_words(row.cause), row.path, row.detail) for row in report.rows])


def _words(cause: str) -> str:
    return str(cause).replace("_", " ")
