"""`noctuary index`, `ingest` and `db-init`: from files to what can be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.doors.finishing import finish

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine import Engine
    from engine.errors import NoctuaryError

EMBED = click.option(
    "--embed/--no-embed", default=True, show_default=True, help="Also make vectors, or leave them for later."
)
FOLDER = click.argument("folder", required=False, type=parameters.PATH)


@click.command()
@FOLDER
@EMBED
@parameters.JSON
def index(folder: Path | None, *, embed: bool, as_json: bool) -> int:
    """Bring the index up to date and wait until it is.

    FOLDER is added to the folders of notes if it is new; without it all of them are indexed. What
    is unchanged is neither read again nor embedded again. Exit status 2 when a folder or a note failed.
    """

    async def work(engine: Engine) -> int:
        errors: Sequence[NoctuaryError] = ()
        if folder is None:
            errors = await engine.add_folders(engine.settings.corpus_path)
            queued = await engine.notes.index_all()
        else:
            queued = await engine.notes.index_all((await engine.notes.add_folder(folder)).id)
        return await finish(engine, queued, embed=embed, as_json=as_json, errors=errors)

    return session.run(work, application="noctuary index")


@click.command()
@click.option(
    "--path",
    type=parameters.PATH,
    help="One file or folder in a folder of notes; else all folders.",
)
@EMBED
@parameters.JSON
def ingest(path: Path | None, *, embed: bool, as_json: bool) -> int:
    """Index one file, or what differs in a folder, and wait.

    Without --path all folders of notes, those of CORPUS_PATH first added to them.
    """

    async def work(engine: Engine) -> int:
        errors = await engine.add_folders(engine.settings.corpus_path) if path is None else ()
        paths = [folder.path for folder in await engine.notes.folders()] if path is None else [path]
        queued = sum([await engine.notes.ingest(one) for one in paths])
        return await finish(engine, queued, embed=embed, as_json=as_json, errors=errors)

    return session.run(work, application="noctuary ingest")


@click.command("db-init")
@parameters.JSON
def db_init(*, as_json: bool) -> int:
    """Make or migrate the database and say where it is.

    Every other command does so too.
    """

    async def work(engine: Engine) -> int:
        info = engine.database.info
        if as_json:
            output.dump(info)
            return exits.DONE
        kind = "embedded" if info.embedded else "given by DATABASE_URL"
        output.say(f"PostgreSQL {info.version} with pgvector {info.pgvector}, {kind}: {info.location}")
        for warning in info.warnings:
            output.note(warning)
        return exits.DONE

    return session.run(work, application="noctuary db-init")
