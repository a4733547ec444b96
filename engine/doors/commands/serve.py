"""`noctuary serve`: notes and memory by HTTP, and the background services that keep the index live."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click

from engine.doors import exits, jsonlog, parameters, session
from engine.doors.commands.services import AS_TEXT, form
from engine.settings import Settings

if TYPE_CHECKING:
    from engine import Engine
    from engine.doors.http.listening import Listening

HOST, PORT = "127.0.0.1", 8765

_log = logging.getLogger("noctuary.http")


@click.command()
@click.option("--host", type=parameters.TEXT, default=HOST, show_default=True, help="Where to listen.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    show_default=True,
    help="0: any free one.",
)
@click.option("--watch/--no-watch", default=True, show_default=True, help="Watch the folders of notes too.")
@click.option("--work/--no-work", default=True, show_default=True, help="Index and make vectors too.")
@parameters.JSON
@AS_TEXT
def serve(host: str, port: int, *, watch: bool, work: bool, as_json: bool, as_text: bool) -> int:
    """Serve notes and memory by HTTP until stopped.

    GET /dashboard is a page, GET /openapi.json describes the rest. It is not served to other machines without
    API_TOKEN. What happens is told as by `noctuary watch`.
    """
    from engine.doors.http import listening

    as_text = form(as_json=as_json, as_text=as_text)
    place = listening.bind(host, port, guarded=Settings.load().guarded)
    try:
        return session.run(
            lambda engine: _serve(engine, place, watch=watch, work=work, as_text=as_text),
            application="noctuary serve",
        )
    finally:
        place.close()


async def _serve(engine: Engine, place: Listening, *, watch: bool, work: bool, as_text: bool) -> int:
    from engine.doors.http import server
    from engine.doors.http.application import application

    async with jsonlog.to_stdout(engine, as_text=as_text):
        await engine.start(watch=watch, work=work, embed=work)
        if not engine.settings.guarded:
            _log.warning(
                "API_TOKEN is not set: whoever reaches %s may read the notes and the memory.", place.url
            )
        _log.info("Serving on %s; the dashboard is %s/dashboard. Ctrl+C ends it.", place.url, place.url)
        await server.serve(application(engine, watching=watch, hosts=place.hosts), place.sockets)
    return exits.DONE
