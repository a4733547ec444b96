"""The default of the setting `keys`: every action of the console with its keys.

It stands with the settings, so that a misspelt action is told by every command that reads them and not
only by the console. What the actions do is the console's business; a test there holds the two together.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from engine.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DEFAULTS: Mapping[str, str] = {
    "app.pane-1": "1",
    "app.pane-2": "2",
    "app.pane-3": "3",
    "app.pane-4": "4",
    "app.pane-5": "5",
    "app.pane-6": "6",
    "app.pane-7": "7",
    "app.pane-8": "8",
    "app.next-pane": "tab",
    "app.previous-pane": "shift+tab",
    "app.palette": "colon",
    "app.help": "question_mark",
    "app.add-folder": "A",
    "app.folders": "F",
    "app.eval": "E",
    "app.theme": "T",
    "app.quit": "q",
    "list.down": "j,down",
    "list.up": "k,up",
    "list.top": "g,home",
    "list.bottom": "G,end",
    "list.half-down": "ctrl+d,pagedown",
    "list.half-up": "ctrl+u,pageup",
    "list.filter": "slash",
    "list.next-match": "n",
    "list.previous-match": "N",
    "list.clear": "escape",
    "list.mark": "space",
    "list.mark-all": "asterisk",
    "list.unmark": "u",
    "list.copy": "y",
    "list.open": "enter,e",
    "list.refresh": "R",
    "search.ask": "a,ctrl+g",
    "search.preview": "v",
    "search.preview-down": "J",
    "search.preview-up": "K",
    "search.mode": "m",
    "search.explain": "x",
    "search.path": "p",
    "search.folder": "f",
    "search.label": "L",
    "search.label-nothing": "0",
    "jobs.status": "s",
    "jobs.retry": "r",
    "jobs.detail": "i",
    "drift.cause": "c",
    "drift.repair": "r",
    "lessons.delete": "d",
    "lessons.unmark": "u",
    "lessons.commit": "dollar_sign",
    "lessons.undo": "U",
    "lessons.edit": "e",
    "lessons.pin": "p",
    "lessons.delete-named": "D",
    "lessons.synthesize": "s",
    "lessons.distil": "n",
    "lessons.nothing": "0",
    "lessons.tombstones": "t",
    "lessons.view": "v",
    "lessons.order": "o",
    "lessons.preview-down": "J",
    "lessons.preview-up": "K",
    "folders.add": "a",
    "folders.remove": "d",
    "eval.run": "r",
    "eval.open": "enter,e",
    "dialog.close": "escape,q",
    "dialog.down": "j,down",
    "dialog.up": "k,up",
    "dialog.half-down": "ctrl+d,pagedown,space",
    "dialog.half-up": "ctrl+u,pageup",
    "dialog.top": "g,home",
    "dialog.bottom": "G,end",
    "confirm.yes": "y,Y",
    "confirm.no": "n,escape,q",
    "ask.cancel": "escape",
    "ask.down": "down",
    "ask.up": "up",
    "ask.complete": "tab",
    "log.view": "v",
    "log.records": "o",
    "log.queries": "s",
    "log.tokens": "t",
    "log.follow": "f",
    "log.level": "l",
}
"""Keys by action id, in Textual's names; several are separated by commas."""


def refuse_unknown(actions: Iterable[str], place: str = "") -> None:
    """Make sure that there is an action of each of these ids; `place` is where they are given.

    Raises:
        SettingsError: one is not; it tells the nearest that is.
    """
    for action in actions:
        if action not in DEFAULTS:
            given = f" (in {place})" if place else ""
            (near,) = get_close_matches(action, DEFAULTS, n=1, cutoff=0.0)
            raise SettingsError(
                f"There is no action {action!r} to give keys to{given}.", remedy=f"Did you mean {near!r}?"
            )
