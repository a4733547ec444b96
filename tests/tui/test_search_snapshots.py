"""How the search pane looks at 80x24 and 120x40. Only numbers that a machine or a clock chooses are fixed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from engine import Engine
from engine.notes.model import Mode
from tests.support import eventually
from tests.tui.search_console import NOTES, Console, write
from tui.app import NoctuaryApp
from tui.widgets.status_line import Health

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from engine.settings import Settings

Run = Callable[[Any], Awaitable[None]] if TYPE_CHECKING else object


@pytest.fixture
def app(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NoctuaryApp:
    """The console on a small vault, with nothing in it that changes from run to run."""

    async def idle(*_args: object, **_options: object) -> None:
        return

    monkeypatch.setattr(Engine, "start", idle)
    monkeypatch.setattr(NoctuaryApp, "health", property(lambda _app: Health("ready")))
    return NoctuaryApp(settings, write(tmp_path / "vault", NOTES))


def steps(*keys: str) -> Run:
    """Index, go to the search pane and press these; a text of several letters is typed."""

    async def run(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, NoctuaryApp)
        screen = Console(pilot, app)
        await eventually(lambda: app.engine is not None)
        await eventually(lambda: not app.busy)
        await screen.engine.notes.index_all()
        await screen.engine.notes.work_until_idle()
        search = screen.engine.notes.search

        async def steady(query: str, **options: object):
            result = await search(query, **{**options, "mode": Mode.KEYWORD})
            citations = tuple(
                replace(citation, distance=0.25 + place / 8, score=1 - place / 8)
                for place, citation in enumerate(result.citations)
            )
            return replace(result, citations=citations, seconds=0.012, notes=())

        screen.engine.notes.search = steady  # type: ignore[method-assign]
        await screen.press("2")
        for key in keys:
            await screen.press(*(key.removeprefix("type ") if key.startswith("type ") else [key]))

    return run


@pytest.mark.parametrize(
    ("size", "keys"),
    [
        ((80, 24), ()),
        ((80, 24), ("type owl", "down")),
        ((80, 24), ("type owl", "down", "v")),
        ((80, 24), ("type zzzqqqxx", "escape", "p", "type work/**", "enter")),
        ((120, 40), ("type owl", "down", "space", "x")),
    ],
    ids=["nothing-typed", "list", "preview-alone", "nothing-found", "list-and-preview"],
)
def test_the_pane_looks_as_it_did(
    snap_compare: Callable[..., bool], app: NoctuaryApp, size: tuple[int, int], keys: tuple[str, ...]
):
    assert snap_compare(app, terminal_size=size, run_before=steps(*keys))
