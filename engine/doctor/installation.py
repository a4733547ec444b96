"""The settings, the keys and the editor, as far as they can be told without a database."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from engine.doctor.check import Check, State, failed
from engine.errors import NoctuaryError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.settings import Settings


def settings_checks(settings: Settings) -> Iterator[Check]:
    """Settings that were read, what to be careful about in them, and whether the editor is there."""
    count = len(settings.sources)
    yield Check("settings", State.OK, f"All valid; {count} given, the others at their defaults.")
    for caution in settings.cautions:
        yield Check("settings", State.WARN, caution)
    if settings.ignored:
        yield Check(
            "settings",
            State.OK,
            f"{len(settings.ignored)} lines of a .env file are not for Noctuary and are ignored.",
        )
    yield _editor(settings)


def keys_check(settings: Settings, check_keys: Callable[[Mapping[str, str]], object]) -> Check:
    """Whether the console would open with the keys of the settings."""
    try:
        check_keys(settings.keymap)
    except SettingsError as error:
        return failed("keys", error)
    changed = len(settings.keymap)
    return Check("keys", State.OK, f"{changed} changed in config.toml." if changed else "As they come.")


def _editor(settings: Settings) -> Check:
    try:
        editor = settings.editor_command()
    except NoctuaryError as error:
        return Check("editor", State.WARN, error.message, error.remedy)
    if shutil.which(editor[0]):
        return Check("editor", State.OK, f"{' '.join(editor)} ({settings.source('editor')}).")
    return Check(
        "editor", State.WARN, f"{editor[0]} is not installed.", "Set $EDITOR, or editor in config.toml."
    )
