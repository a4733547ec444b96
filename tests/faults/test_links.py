"""Links to folders beside the folders themselves: the kernel has one watch for both, which goes with either."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.integration.watching import watched
from tests.support import eventually

if TYPE_CHECKING:
    from tests.integration.vault import Vault
    from tests.integration.watching import Watched

SOON = 5.0
"""Long before the next survey, which would find everything."""


async def every_save_is_seen(held: Watched, word: str) -> None:
    for path in ("a.md", "sub/a.md", "sub/deep/a.md", "other/a.md"):
        text = f"{word} of {path.replace('/', ' ')}\n"
        held.vault.write(path, text)
        await eventually(lambda path=path: _seen(held, path), SOON)


async def _seen(held: Watched, path: str) -> bool:
    return (await held.vault.in_index()).get(path) == held.vault.on_disk()[path]


def grow(vault: Vault) -> None:
    for path in ("a.md", "sub/a.md", "sub/deep/a.md", "other/a.md"):
        vault.write(path, "at first\n")


@pytest.mark.parametrize("target", [".", "..", "deep", "../other"])
@pytest.mark.parametrize("early", [True, False], ids=["before the watch", "during it"])
async def test_a_link_that_comes_and_goes_makes_nobody_deaf(vault: Vault, target: str, early: bool) -> None:
    grow(vault)
    link = vault.root / "sub/link"
    if early:
        link.symlink_to(target)
    async with watched(vault) as held:
        first = held.state.beat
        await eventually(lambda: held.state.beat != first)  # its watches stand
        if not early:
            link.symlink_to(target)
            vault.write("then.md", "written after the link\n")
            await eventually(lambda: _seen(held, "then.md"), SOON)
        await every_save_is_seen(held, "linked")
        link.unlink()
        await every_save_is_seen(held, "unlinked")
        assert held.services.faults == {}


async def test_a_folder_with_links_in_it_that_is_moved_takes_no_watch_with_it(vault: Vault) -> None:
    grow(vault)
    (vault.root / "box/inner").mkdir(parents=True)
    (vault.root / "box/inner/link").symlink_to("../../other")
    async with watched(vault) as held:
        first = held.state.beat
        await eventually(lambda: held.state.beat != first)  # its watches stand
        (vault.root / "box").rename(vault.root / "case")
        await every_save_is_seen(held, "moved")
        shutil.rmtree(vault.root / "case")
        await every_save_is_seen(held, "removed")
