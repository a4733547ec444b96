"""`noctuary import`: conversations that other programs kept become turns of memory."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, remembering, session
from engine.text.amounts import count

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from engine.memory.imported import ImportReport

SIGN_SECONDS = 5.0
"""Between two signs of life on standard error."""


@click.command("import")
@click.argument("kind", type=parameters.TEXT)
@click.argument("path", type=parameters.PATH)
@click.option("--dry-run", is_flag=True, help="Tell what would be imported, and keep nothing.")
@click.option("--follow", is_flag=True, help="Go on as the files grow, until stopped.")
@parameters.whose
@parameters.JSON
def import_(
    kind: str, path: Path, *, dry_run: bool, follow: bool, core: str | None, user: str | None, as_json: bool
) -> int:
    """Import conversations: claude-code, codex, chatgpt or jsonl.

    PATH is a file, or a folder that is searched for them. It may be repeated: what is known is passed over.
    The oldest comes first, and what was skipped is told with its reason. Keys and passwords are masked.
    With --follow each report is one line.
    """
    if dry_run and follow:
        raise click.UsageError("--dry-run and --follow exclude each other.", click.get_current_context())

    async def work(engine: Engine) -> int:
        key = remembering.key(engine.settings, core, user)
        if follow:
            await engine.start(watch=False, work=False, embed=True)
            tell = output.dump_line if as_json else _tell_line
            await engine.memory.importing.follow(kind, path, key, on_report=tell)
            return exits.DONE
        report = await engine.memory.importing.run(kind, path, key, dry_run=dry_run, on_progress=_Signs())
        if as_json:
            output.dump(report)
        else:
            _print(report)
        return exits.DONE

    return session.run(work, application="noctuary import")


class _Signs:
    """Now and then a sign of life, where somebody watches."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._watched = sys.stderr.isatty()

    def __call__(self, report: ImportReport) -> None:
        """Hear how far the import is."""
        if self._watched and time.monotonic() - self._told >= SIGN_SECONDS:
            self._told = time.monotonic()
            output.note(
                f"{count(report.packets + report.known, 'turn')} of {count(report.files, 'file')} so far …"
            )


def _tell_line(report: ImportReport) -> None:
    output.say(f"{count(report.packets, 'new turn')}.{_masked(report)}")


def _print(report: ImportReport) -> None:
    would = "would be imported" if report.dry_run else "imported"
    output.say(
        f"{count(report.files, 'file')}, {count(report.channels, 'conversation')}:"
        f" {count(report.packets, 'turn')} {would}, {report.known:,} known before.{_masked(report)}"
    )
    if report.skipped:
        output.say("Passed over:")
        rows = [
            (f"{number:,}", f"{why}, as in {report.examples[why]}") for why, number in report.skipped.items()
        ]
        output.table([("   ", *row) for row in rows])


def _masked(report: ImportReport) -> str:
    return f" {count(report.masked, 'secret')} masked." if report.masked else ""
