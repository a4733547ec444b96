"""`noctuary folders`: which folders of notes are kept indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.errors import FolderError
from engine.settings.paths import real
from engine.text.amounts import count

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine

FOLDER = click.argument("folder", type=parameters.PATH)


@click.group(invoke_without_command=True)
@parameters.JSON
@click.pass_context
def folders(ctx: click.Context, *, as_json: bool) -> int:
    """List the folders of notes, or add and remove one."""
    if ctx.invoked_subcommand is not None:
        return exits.DONE
    return session.run(lambda engine: _list(engine, as_json=as_json), application="noctuary folders")


async def _list(engine: Engine, *, as_json: bool) -> int:
    found = await engine.notes.folders()
    if as_json:
        output.dump({"folders": found})
    elif found:
        output.table([(count(folder.files, "file"), str(folder.path)) for folder in found])
    else:
        output.say("No folder of notes yet. `noctuary folders add FOLDER` adds one.")
    return exits.DONE


@folders.command()
@FOLDER
@parameters.JSON
def add(folder: Path, *, as_json: bool) -> int:
    """Keep a folder indexed. `noctuary index` or the console then reads it."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        added = await engine.notes.add_folder(folder)
        if as_json:
            output.dump(added)
        else:
            output.say(f"{added.path} is a folder of notes.")
        return exits.DONE

    return session.run(work, application="noctuary folders")


@folders.command()
@FOLDER
@parameters.JSON
def remove(folder: Path, *, as_json: bool) -> int:
    """Forget a folder and its index. The files themselves are not touched."""
    as_json = parameters.json_wanted(as_json=as_json)
    linked = real(folder)

    async def work(engine: Engine) -> int:
        known = await engine.notes.folders()
        hits = [one for one in known if one.path in {folder, linked}]
        if not hits:
            names = ", ".join(str(one.path) for one in known) or "none yet"
            raise FolderError(f"{folder} is not a folder of notes.", remedy=f"They are: {names}.")
        await engine.notes.remove_folder(hits[0].id)
        if as_json:
            output.dump({"removed": hits[0].path})
        else:
            output.say(f"{hits[0].path} is forgotten; its files are as they were.")
        return exits.DONE

    return session.run(work, application="noctuary folders")
