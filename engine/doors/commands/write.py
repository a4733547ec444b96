"""`noctuary write`: the writing agent, step by step, and the path of the note it wrote."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, narrowing, output, parameters, session

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from engine.notes.written import WriteStep, Written


@click.command()
@click.argument("instruction", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Show the note that would be written, and write nothing.")
@click.option("--folder", type=parameters.PATH, help="Write into this folder of notes, if there are several.")
@parameters.JSON
def write(instruction: tuple[str, ...], *, dry_run: bool, folder: Path | None, as_json: bool) -> int:
    """Have a new note written from the notes there are.

    The language model of LLM_PROVIDER (AGENT_MODEL, which must call tools) searches the notes and writes one.
    It never changes or overwrites a note. The note is indexed at once, and its path is printed.
    """
    asked = narrowing.question(instruction)

    async def work(engine: Engine) -> int:
        on_step = _tell if sys.stderr.isatty() else None
        written = await engine.writer.write(asked, dry_run=dry_run, folder=folder, on_step=on_step)
        if as_json:
            output.dump(as_object(written))
        else:
            _print(written)
        if not written.dry_run and not written.indexed:
            output.note("It is not in the index yet; `noctuary drift` shows why.")
        return exits.DONE

    return session.run(work, application="noctuary write")


def as_object(written: Written) -> dict[str, Any]:
    """A written note for JSON."""
    return {
        "folder": written.folder,
        "path": written.path,
        "text": written.text,
        "dry_run": written.dry_run,
        "indexed": written.indexed,
        "steps": [step.text for step in written.steps],
        "tokens": {"prompt": written.prompt_tokens, "completion": written.completion_tokens},
    }


def _tell(step: WriteStep) -> None:
    output.note(f"{step.number}. {step.text}")


def _print(written: Written) -> None:
    output.say(str(written.folder / written.path))
    if written.dry_run:
        output.say()
        output.say_text(written.text.rstrip("\n"))
