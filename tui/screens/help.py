"""The help: every key of every pane and dialog, from the registry."""

from __future__ import annotations

from textwrap import indent, wrap
from typing import TYPE_CHECKING

from textual.content import Content

from tui.actions import REGISTRY, SCOPES, Action
from tui.screens.dialog import TextDialog
from tui.text import line

if TYPE_CHECKING:
    from tui.keymap import Keymap

KEYS_WIDTH = 14
"""Cells for the keys: the longest default, `Space ^d PgDn`, and a gap."""

HELP_WIDTH = 74
"""Cells for what an action does; its id stands behind it where the line is long enough."""

NARROW_WIDTH = 57
"""The same on a terminal of 80 columns."""


class HelpDialog(TextDialog):
    """All keys, those of the pane that is up first."""

    def __init__(self, keymap: Keymap, scope: str, *, wide: bool) -> None:
        super().__init__("Keys", help_text(keymap, scope, wide=wide))


def help_text(keymap: Keymap, scope: str, *, wide: bool) -> Content:
    """Every action by scope: the pane's own, then everywhere, then lists, other panes and dialogs."""
    lines: list[Content] = []
    for name in [scope, *(each for each in SCOPES if each != scope)]:
        actions = [action for action in REGISTRY.values() if action.scope == name]
        if actions:
            heading = Content.styled(SCOPES[name], "bold underline")
            lines += [heading, *(_line(keymap, action, wide=wide) for action in actions), Content("")]
    lines.append(Content('Other keys: in config.toml under [keys], as "jobs.retry" = "x,f5".'))
    if not wide:
        lines.append(Content("The ids of all actions are shown from 100 columns on."))
    return Content("\n").join(lines)


def _line(keymap: Keymap, action: Action, *, wide: bool) -> Content:
    keys = line(keymap.shown_all(action.id).ljust(KEYS_WIDTH) + " ", "bold")
    if wide:
        return Content.assemble(keys, action.help.ljust(HELP_WIDTH), (f" {action.id}", "dim"))
    beside = "\n".join(wrap(action.help, NARROW_WIDTH))
    return Content.assemble(keys, indent(beside, " " * (KEYS_WIDTH + 1)).lstrip())
