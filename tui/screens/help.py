"""The help: every key of every pane and dialog, from the registry."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from textual.content import Content

from tui.actions import REGISTRY, SCOPES, Action
from tui.screens.dialog import TextDialog
from tui.text import line

if TYPE_CHECKING:
    from tui.keymap import Keymap

KEYS_WIDTH = 16
"""Cells for the keys: the longest default, `^d PgDn Space`, and a gap."""


class HelpDialog(TextDialog):
    """All keys, those of the pane that is up first."""

    def __init__(self, keymap: Keymap, scope: str) -> None:
        super().__init__("Keys", help_text(keymap, scope))


def help_text(keymap: Keymap, scope: str) -> Content:
    """Every action by scope: the pane's own, everywhere, lists, then the other panes and dialogs."""
    order = [scope, *(each for each in SCOPES if each != scope)]
    groups = {name: list(group) for name, group in groupby(REGISTRY.values(), lambda action: action.scope)}
    parts: list[Content] = []
    for name in order:
        if name in groups:
            parts += [
                Content.styled(SCOPES[name], "bold $text-primary"),
                *_lines(keymap, groups[name]),
                Content(""),
            ]
    parts.append(Content('Remap any of them in config.toml: [keys], the id in quotes = "the,keys".'))
    return Content("\n").join(parts)


def _lines(keymap: Keymap, actions: list[Action]) -> list[Content]:
    return [
        Content.assemble(
            "  ",
            line(keymap.shown_all(action.id).ljust(KEYS_WIDTH), "bold"),
            action.help,
            (f"  {action.id}", "$text-muted"),
        )
        for action in actions
    ]
