"""The one registry of what can be done: every key, hint, help line and palette entry comes from here.

An action's id is `scope.verb`. The scope says where it is answered: `app` everywhere, `list` in every pane
with a table, else in the pane of that name; the method that answers is `do_<verb>`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done. `label` is for the footer, `help` a sentence for `?` and the palette."""

    id: str
    label: str
    help: str
    palette: bool = True

    @property
    def scope(self) -> str:
        """Where the action is answered."""
        return self.id.partition(".")[0]

    @property
    def method(self) -> str:
        """The name of the method that answers."""
        return "do_" + self.id.partition(".")[2].replace("-", "_")


APP = (
    Action("app.pane-1", "inbox", "Go to the Inbox: what waits for you"),
    Action("app.pane-2", "search", "Go to Search"),
    Action("app.pane-3", "jobs", "Go to Jobs: the queue and the embedding backlog"),
    Action("app.pane-4", "drift", "Go to Drift: where index and disk differ"),
    Action("app.pane-5", "lessons", "Lessons come with a later version", palette=False),
    Action("app.pane-6", "proposals", "Proposals come with a later version", palette=False),
    Action("app.pane-7", "knowledge", "Knowledge comes with a later version", palette=False),
    Action("app.pane-8", "log", "Go to the Log: what the engine did"),
    Action("app.next-pane", "next", "Next pane", palette=False),
    Action("app.previous-pane", "previous", "Previous pane", palette=False),
    Action("app.palette", "commands", "Every command by name", palette=False),
    Action("app.help", "help", "All keys"),
    Action("app.add-folder", "add folder", "Add a folder of notes"),
    Action("app.folders", "folders", "List the folders of notes, add or remove one"),
    Action("app.theme", "theme", "Next theme: dark, light, the terminal's own colours"),
    Action("app.quit", "quit", "Quit"),
)

LIST = (
    Action("list.down", "down", "Down one row", palette=False),
    Action("list.up", "up", "Up one row", palette=False),
    Action("list.top", "top", "To the first row", palette=False),
    Action("list.bottom", "bottom", "To the last row", palette=False),
    Action("list.half-down", "half page", "Down half a page", palette=False),
    Action("list.half-up", "half page", "Up half a page", palette=False),
    Action("list.filter", "filter", "Filter by text; Enter keeps the filter, Esc drops it"),
    Action("list.next-match", "next", "Next row that matches the filter", palette=False),
    Action("list.previous-match", "previous", "Previous row that matches the filter", palette=False),
    Action("list.clear", "clear", "Drop the filter, else the marks", palette=False),
    Action("list.mark", "mark", "Mark or unmark the row; an action takes the marks, else the row"),
    Action("list.mark-all", "mark all", "Mark all rows shown, or none if all are marked"),
    Action("list.unmark", "unmark", "Undo: bring back or take away the last marks"),
    Action("list.copy", "copy", "Copy what the row is about"),
    Action("list.open", "open", "Open the file in your editor, or go where the row leads"),
    Action("list.refresh", "refresh", "Read again"),
)

JOBS = (
    Action("jobs.status", "status", "Show the next status: all, pending, processing, failed, done"),
    Action("jobs.retry", "retry", "Retry the marked jobs, else all failed ones (asks first)"),
    Action("jobs.detail", "detail", "Everything about the job, its error in full"),
)

DRIFT = (
    Action("drift.cause", "cause", "Show the next cause: all, or one of the five"),
    Action("drift.repair", "repair", "Repair the marked rows, else all (asks first)"),
)

LOG = (
    Action("log.follow", "follow", "Follow new records, or stop following"),
    Action("log.level", "level", "Show all records, warnings and errors, or errors"),
)

REGISTRY: dict[str, Action] = {action.id: action for action in (*APP, *LIST, *JOBS, *DRIFT, *LOG)}
