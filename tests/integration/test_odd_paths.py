"""Paths that no system can have are refused in the family's words, wherever they come in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from engine.errors import FolderError

if TYPE_CHECKING:
    from tests.integration.vault import Vault


@pytest.mark.parametrize("odd", ["~nosuchuser", "~nosuchuser/notes", "a\0b", "/\0"])
async def test_a_path_that_is_none_is_refused_by_every_way_in(vault: Vault, odd: str) -> None:
    for ask in (
        lambda: vault.notes.add_folder(Path(odd)),
        lambda: vault.notes.ingest(Path(odd)),
        lambda: vault.notes.search("owl", folder=Path(odd)),
    ):
        with pytest.raises(FolderError):
            await ask()


async def test_a_loop_of_links_is_no_folder(vault: Vault, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(FolderError, match="cannot be read"):
        await vault.notes.add_folder(loop)
    with pytest.raises(FolderError, match="no indexed folder"):
        await vault.notes.ingest(loop / "note.md")
