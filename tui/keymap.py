"""Which keys run which action. Keymaps are data: these defaults, with the user's own laid over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.keys import Keys, format_key

from engine.errors import SettingsError
from engine.settings.keys import DEFAULTS, refuse_unknown
from engine.text.safe import steers
from tui.actions import REGISTRY, Action

if TYPE_CHECKING:
    from collections.abc import Mapping


def bindings(*scopes: str) -> list[Binding]:
    """The bindings of these scopes, for the `BINDINGS` of whatever answers them with `action_act`."""
    return [
        Binding(DEFAULTS[action.id], f"act('{action.id}')", action.help, id=action.id, show=False)
        for action in REGISTRY.values()
        if action.scope in scopes
    ]


class Keymap:
    """The keys in use: `DEFAULTS` with the overrides of the settings.

    Raises SettingsError when an override names no action, or when two actions that are reachable at the
    same time are left with the same key.
    """

    def __init__(self, overrides: Mapping[str, str]) -> None:
        refuse_unknown(overrides)
        self.overrides = dict(overrides)
        self._keys = {action: _names(action, keys) for action, keys in {**DEFAULTS, **overrides}.items()}
        self._refuse_clashes()

    def keys(self, action: str) -> tuple[str, ...]:
        """The keys that run an action, in Textual's names."""
        return self._keys[action]

    def shown(self, action: str) -> str:
        """The first key of an action as the user reads it: `?`, `^d`, `Space`."""
        keys = self.keys(action)
        return shown(keys[0]) if keys else ""

    def shown_all(self, action: str) -> str:
        """All keys of an action as the user reads them."""
        return " ".join(shown(key) for key in self.keys(action))

    def _refuse_clashes(self) -> None:
        for first in REGISTRY.values():
            for second in REGISTRY.values():
                both = set(self.keys(first.id)) & set(self.keys(second.id))
                if first.id < second.id and both and _meet(first, second):
                    raise SettingsError(
                        f"The key {min(both)!r} is given to both {first.id!r} and {second.id!r}.",
                        remedy="Give one of them another key in config.toml under [keys].",
                    )


def _names(action: str, keys: str) -> tuple[str, ...]:
    """Keys as Textual names them, whether given as `?` or as `question_mark`."""
    given = [key.strip() for key in keys.split(",") if key.strip()]
    if not given:
        raise SettingsError(
            f"{action!r} is left without a key.", remedy="Give it one in config.toml under [keys]."
        )
    names = tuple(binding.key for binding in Binding.make_bindings([Binding(",".join(given), "")]))
    for name in names:
        if not _is_key(name):
            raise SettingsError(
                f"{name!r}, given to {action!r}, is no key.",
                remedy="Keys are named like j, ctrl+d, f5, enter.",
            )
    return names


def _is_key(name: str) -> bool:
    """Whether a name without its modifiers is a key of Textual's, or the name of a character that is seen."""
    base = name.rpartition("+")[2]
    if base in {key.value for key in Keys}:
        return True
    return 1 in {len(base), len(format_key(base))} and not steers(base + format_key(base))


INSTEAD: Mapping[str, str] = {
    "lessons.edit": "list.open",
    "lessons.distil": "list.next-match",
    "lessons.unmark": "list.unmark",
}
"""Actions of a pane whose keys may be those of an action of every list, which then has them elsewhere."""

_APART = frozenset({"folders", "eval", "dialog", "confirm", "ask"})
_SHARED = frozenset({"app", "list"})


def _meet(first: Action, second: Action) -> bool:
    """Whether both can be reached from one place. Above a dialog the keys of the panes are not there."""
    scopes = {first.scope, second.scope}
    if second.id == INSTEAD.get(first.id) or first.id == INSTEAD.get(second.id):
        return False
    if len(scopes) == 1 or scopes in ({"folders", "list"}, {"folders", "dialog"}, {"eval", "dialog"}):
        return True
    return bool(_SHARED & scopes) and not _APART & scopes


_NAMES = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "home": "Home",
    "end": "End",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "backspace": "Bksp",
}


def shown(key: str) -> str:
    """A key as the user reads it."""
    if key.startswith("ctrl+"):
        return "^" + shown(key.removeprefix("ctrl+"))
    if key.startswith("shift+"):
        return "⇧" + shown(key.removeprefix("shift+"))
    return _NAMES.get(key) or format_key(key)
