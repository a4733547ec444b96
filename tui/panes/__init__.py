"""The panes of this version, in the order of their numbers."""

from __future__ import annotations

from typing import Any

from tui.panes.base import Pane
from tui.panes.inbox import InboxPane

PANES: tuple[type[Pane[Any]], ...] = (InboxPane,)
