"""The panes of this version, in the order of their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tui.panes.drift import DriftPane
from tui.panes.inbox import InboxPane
from tui.panes.jobs import JobsPane
from tui.panes.lessons import LessonsPane
from tui.panes.log import LogPane
from tui.panes.search import SearchPane

if TYPE_CHECKING:
    from tui.panes.base import Pane

PANES: tuple[type[Pane[Any]], ...] = (InboxPane, SearchPane, JobsPane, DriftPane, LessonsPane, LogPane)
