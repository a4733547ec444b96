"""What the doctor says about the terminal: size, encoding, and the way a copied text will take."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from engine.doctor import Check, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SMALLEST = (80, 24)
TMUX_SECONDS = 3.0
"""A tmux server that has not answered by then hangs."""


def terminal_checks(env: Mapping[str, str]) -> list[Check]:
    """The checks of the terminal that this process runs in."""
    if not sys.stdout.isatty():
        return [Check("terminal", State.OK, "The output is not a terminal, so none was looked at.")]
    return [_size(), *_type(env), _clipboard(env)]


def _size() -> Check:
    columns, lines = shutil.get_terminal_size()
    sentence = f"{columns} columns, {lines} lines, {sys.stdout.encoding}."
    if columns < SMALLEST[0] or lines < SMALLEST[1]:
        return Check("terminal", State.WARN, sentence, "The console wants 80 columns and 24 lines.")
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        return Check("terminal", State.WARN, sentence, "Use a UTF-8 locale, for example LANG=C.UTF-8.")
    return Check("terminal", State.OK, sentence)


def _type(env: Mapping[str, str]) -> Iterator[Check]:
    if env.get("TERM", "") in {"", "dumb"}:
        yield Check(
            "terminal", State.WARN, "TERM is unset or dumb.", "Set it, for example TERM=xterm-256color."
        )
    if "SSH_CONNECTION" in env:
        yield Check("terminal", State.OK, "Over SSH. On a slow line, set NOCTUARY_REDUCED_REPAINT=yes.")


def _clipboard(env: Mapping[str, str]) -> Check:
    """How `y` will copy: through tmux, or by the escape sequence OSC 52."""
    if not env.get("TMUX"):
        return Check(
            "clipboard", State.OK, "By OSC 52, if no local tool is there: the terminal must allow it."
        )
    found = _tmux("show-options", "-gv", "set-clipboard")
    if found is None:
        return Check("clipboard", State.WARN, "tmux does not answer.", "Copying then uses OSC 52.")
    if found == "off":
        return Check(
            "clipboard",
            State.WARN,
            "In tmux, whose set-clipboard is off: copies stay inside tmux.",
            "In tmux.conf: set -s set-clipboard on",
        )
    return Check("clipboard", State.OK, f"Through tmux (set-clipboard {found}).")


def _tmux(*arguments: str) -> str | None:
    tmux = shutil.which("tmux")
    if tmux is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [tmux, *arguments], capture_output=True, text=True, timeout=TMUX_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
