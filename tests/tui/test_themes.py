"""The theme: gone through by a key, and the same in the next session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tui.desk import NOTES, desk, write
from tui.themes import FILE, NEXT

if TYPE_CHECKING:
    from pathlib import Path

    from engine.settings import Settings


async def test_the_theme_is_the_same_in_the_next_session(settings: Settings, tmp_path: Path):
    vault = write(tmp_path / "vault", NOTES)
    async with desk(settings, vault) as screen:
        first = screen.app.theme
        await screen.press("T")
        chosen = screen.app.theme
        assert chosen == NEXT[first]
    async with desk(settings, vault) as screen:
        assert screen.app.theme == chosen


async def test_a_theme_that_is_not_there_any_more_is_ignored(settings: Settings, tmp_path: Path):
    vault = write(tmp_path / "vault", NOTES)
    for text in (b"no-such-theme\n", b"\xff\x00" * 5000, b""):
        (settings.paths.state / FILE).write_bytes(text)
        async with desk(settings, vault) as screen:
            assert screen.app.theme == next(iter(NEXT))


async def test_a_theme_that_cannot_be_kept_is_shown_and_said(settings: Settings, tmp_path: Path):
    (settings.paths.state / FILE).mkdir()
    async with desk(settings, write(tmp_path / "vault", NOTES)) as screen:
        await screen.press("T")
        assert "it cannot be kept" in screen.flash
        assert screen.app.theme == NEXT[next(iter(NEXT))]
