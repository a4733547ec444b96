"""The order in which the parts are tried: settings, folders of ours, server, and all that needs it open.

What is wrong with the server is looked for before anything is opened, since opening mends some of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.doctor.check import Check, Finding, State, failed, skipped
from engine.doctor.installation import keys_check, settings_checks
from engine.doctor.opened import Opened, model_check, open_and_look
from engine.doctor.own_folders import own_folder_findings
from engine.errors import NoctuaryError
from engine.settings import Settings
from engine.settings.paths import is_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.database import OnState

ROUNDS = 3
"""A mend may bring to light what could not be seen before it: a folder that could not be read."""

_LEFT = "This is for you to decide."


async def examine(
    check_keys: Callable[[Mapping[str, str]], object] | None = None,
    *,
    fix: bool = False,
    on_state: OnState | None = None,
) -> list[Check]:
    """Try settings, disk, server, database, folders, watching and model, in the order in which they depend.

    Args:
        check_keys: of the console, which alone knows which keys there are and which may not be shared.
        fix: put right what safely can be. Nothing is removed, no process but the embedded server is
            signalled, and no permission is widened but on files of this user's own installation.
        on_state: hears what takes long, and an empty sentence when nothing is waited for any more.
    """
    try:
        settings = Settings.load()
    except NoctuaryError as error:
        checks = [failed("settings", error), skipped("everything else", "the settings")]
    else:
        checks = list(settings_checks(settings))
        if check_keys is not None:
            checks.insert(1, keys_check(settings, check_keys))
        from engine.database.model import silent, without_repeats

        checks += await _installation(settings, without_repeats(on_state or silent), fix=fix)
    return [_told(check, fix=fix) for check in checks]


async def _installation(settings: Settings, on_state: OnState, *, fix: bool) -> list[Check]:
    """What needs the settings: the findings before opening, and then everything else with the engine open."""
    found = await _findings(settings, on_state, fix=fix)
    places = settings.paths.locations()
    unmade = [name for name in ("data", "state") if not is_folder(places[name])]
    blocked = [finding.check.name for finding in found if finding.blocks]
    if unmade or blocked:
        needed = f"the {unmade[0]} folder" if unmade else f"the {blocked[0]}"
        opened = Opened([skipped("database and folders", needed)])
    else:
        opened = await open_and_look(settings, on_state)
    before = [finding.after_opening(opened=opened.model is not None) for finding in found]
    return [*before, *opened.checks, opened.model or await model_check(settings)]


async def _findings(settings: Settings, on_state: OnState, *, fix: bool) -> list[Finding]:
    """What is found before opening; with `fix`, after it was mended."""
    found = await _look(settings, on_state)
    if not fix:
        return found
    told: list[Finding] = []
    for _ in range(ROUNDS):
        known = {finding.check.sentence for finding in told}
        news = [finding for finding in found if finding.check.sentence not in known]
        told += [await finding.mended() for finding in news]
        if not any(finding.mend for finding in news):
            break
        found = [each for each in await _look(settings, on_state) if each.check.state is not State.OK]
    return told


async def _look(settings: Settings, on_state: OnState) -> list[Finding]:
    found = await asyncio.to_thread(lambda: list(own_folder_findings(settings)))
    data = settings.paths.locations()["data"]
    if settings.database_url or not is_folder(data) or any(finding.blocks for finding in found):
        return found
    from engine.database.embedded.places import Places
    from engine.doctor.server import server_findings

    return [*found, *await server_findings(Places(data), on_state)]


def _told(check: Check, *, fix: bool) -> Check:
    """The check with why it was left as it is, where `--fix` was asked to mend it."""
    if not fix or check.state is State.OK or check.sentence.startswith("Not tried"):
        return replace(check, left="")
    return check if check.left else replace(check, left=_LEFT)
