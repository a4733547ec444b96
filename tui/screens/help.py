"""The help: every key of every pane and dialog, from the registry."""

from __future__ import annotations

from textwrap import indent, wrap
from typing import TYPE_CHECKING

from textual.content import Content

from tui.actions import NOTES, REGISTRY, SCOPES, Action
from tui.screens.dialog import TextDialog
from tui.text import line

if TYPE_CHECKING:
    from tui.keymap import Keymap

KEYS_WIDTH = 15
"""Cells for the keys: the longest default, `Space ^d PgDn`, and a gap."""

IDS_WIDTH = 1 + max(len(action.id) for action in REGISTRY.values())
"""Cells for the id of an action, with a gap before it."""

LEAST_WIDTH = 50
"""Cells for what an action does; where less would be left, the ids stand nowhere."""


class HelpDialog(TextDialog):
    """All keys, those of the pane that is up first."""

    def __init__(self, keymap: Keymap, scope: str) -> None:
        super().__init__("Keys", Content())
        self._keymap = keymap
        self._scope_up = scope

    def on_resize(self) -> None:
        """Lay out for the width there is."""
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        self._text.put(help_text(self._keymap, self._scope_up, self._scroll.scrollable_content_region.width))


def help_text(keymap: Keymap, scope: str, width: int) -> Content:
    """Every action by scope: the pane's own, then everywhere, then lists, other panes and dialogs."""
    beside = width - KEYS_WIDTH - IDS_WIDTH
    ids = beside >= LEAST_WIDTH
    room = beside if ids else max(width - KEYS_WIDTH, 1)
    lines: list[Content] = []
    for name in [scope, *(each for each in SCOPES if each != scope)]:
        actions = [action for action in REGISTRY.values() if action.scope == name and action.listed]
        if actions:
            heading = Content.styled(SCOPES[name], "bold underline")
            lines += [heading, *(_line(keymap, action, room, ids=ids) for action in actions)]
            lines += [Content(each) for each in wrap(NOTES.get(name, ""), max(width, 1))]
            lines.append(Content(""))
    lines.append(Content('Other keys: in config.toml under [keys], as "jobs.retry" = "x,f5".'))
    if not ids:
        lines.append(Content("A wider terminal shows the ids of all actions."))
    return Content("\n").join(lines)


def _line(keymap: Keymap, action: Action, room: int, *, ids: bool) -> Content:
    keys = line(keymap.shown_all(action.id).ljust(KEYS_WIDTH - 1) + " ", "bold")
    first, *more = wrap(action.help, room)
    rest = indent("".join(f"\n{each}" for each in more), " " * KEYS_WIDTH)
    return Content.assemble(
        keys, first.ljust(room) if ids else first, (f" {action.id}" if ids else "", "dim"), rest
    )
