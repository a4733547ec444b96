"""The one registry of what can be done: every key, hint, help line and palette entry comes from here.

An action's id is `scope.verb`. The scope says where it is answered: `app` everywhere, `list` in every pane
with a table, `dialog` in a dialog that is read, `ask` in one that is typed into, else in the pane or
screen of that name. The method that answers is `do_<verb>`.
"""

from __future__ import annotations

from dataclasses import dataclass

SCOPES = {
    "app": "Everywhere",
    "list": "In every list",
    "search": "Search",
    "jobs": "Jobs",
    "drift": "Drift",
    "lessons": "Lessons",
    "log": "Log",
    "folders": "Folders",
    "eval": "Eval",
    "dialog": "In a dialog that is read",
    "confirm": "When asked for a yes or no",
    "ask": "In a dialog that is typed into",
}
"""Every scope with its heading in the help."""

NOTES = {
    "lessons": "A row says D when the lesson is to be deleted, + when it is new since your last visit. The "
    "filter takes words and also core:x, user:x, age:>30d, unused, new, expired, deleted, all, L12.",
}
"""What else the help says of a scope."""


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that can be done. `label` is for the footer, `help` a sentence for `?` and the palette."""

    id: str
    label: str
    help: str
    palette: bool = True
    listed: bool = True
    """Whether the help tells it: not where there is nothing to go to yet."""

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
    Action("app.pane-2", "search", "Go to the search line"),
    Action("app.pane-3", "jobs", "Go to Jobs: the queue and the embedding backlog"),
    Action("app.pane-4", "drift", "Go to Drift: where index and disk differ"),
    Action("app.pane-5", "lessons", "Go to Lessons: what your agents learned, and what shall go again"),
    Action("app.pane-6", "pane 6", "Say which panes there are", palette=False, listed=False),
    Action("app.pane-7", "pane 7", "Say which panes there are", palette=False, listed=False),
    Action("app.pane-8", "log", "Go to the Log: what the engine did, what was asked, tokens"),
    Action("app.next-pane", "next", "Next pane", palette=False),
    Action("app.previous-pane", "previous", "Previous pane", palette=False),
    Action("app.palette", "commands", "Every command by name", palette=False),
    Action("app.help", "help", "All keys"),
    Action("app.add-folder", "add folder", "Add a folder of notes"),
    Action("app.folders", "folders", "List the folders of notes, add or remove one"),
    Action("app.eval", "eval", "How well the search answers your labelled questions, now and before"),
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
    Action("list.filter", "filter", "Filter: Enter keeps it, Esc drops it; in Search, to the search line"),
    Action("list.next-match", "next", "Next row that matches the filter", palette=False),
    Action("list.previous-match", "previous", "Previous row that matches the filter", palette=False),
    Action("list.clear", "clear", "Drop the filter, else the marks", palette=False),
    Action("list.mark", "mark", "Mark or unmark the row; an action takes the marks, else the row"),
    Action("list.mark-all", "mark all", "Mark all rows, or none if all are marked"),
    Action("list.unmark", "unmark", "Undo: bring back or take away the last marks"),
    Action("list.copy", "copy", "Copy what the row is about"),
    Action("list.open", "open", "Open the file in your editor, or go where the row leads"),
    Action("list.refresh", "refresh", "Read again"),
)

SEARCH = (
    Action("search.ask", "ask", "Have a language model answer; again: go to its answer, and back"),
    Action("search.preview", "preview", "The cited lines alone on the screen, or back beside the list"),
    Action("search.preview-down", "preview down", "Scroll the preview down", palette=False),
    Action("search.preview-up", "preview up", "Scroll the preview up", palette=False),
    Action("search.mode", "mode", "Search by the next mode: hybrid, keyword, vector"),
    Action("search.explain", "explain", "Show or hide where each citation stood in each list"),
    Action("search.path", "path", "Search only in paths that match a pattern"),
    Action("search.folder", "folder", "Search only in the next folder, at last in all again"),
    Action("search.label", "label", "Make the query a labelled question for eval, answered by this citation"),
    Action("search.label-nothing", "nothing", "Make the query a labelled question that nothing answers"),
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

LESSONS = (
    Action("lessons.delete", "delete", "Mark the lesson for deletion (D) and go on; with marks, all of them"),
    Action("lessons.unmark", "unmark", "Take the D away and go on; of a deleted lesson: bring it back"),
    Action("lessons.commit", "commit", "Delete all that have a D (asks first)"),
    Action("lessons.undo", "undo", "Bring back what was deleted last"),
    Action("lessons.edit", "edit", "Give the lesson another wording"),
    Action("lessons.pin", "pin", "Pin the lesson, so that it goes with every turn and stays; or let it go"),
    Action("lessons.delete-named", "delete L…", "Delete a lesson by its reference, without its being shown"),
    Action("lessons.synthesize", "learn", "Learn from what was said since the last run; again: cancel"),
    Action("lessons.distil", "distil", "Go to the clusters that wait; there: type the rule of this one"),
    Action("lessons.nothing", "nothing", "The cluster teaches nothing durable (asks first)"),
    Action("lessons.tombstones", "tombstones", "Show what was deleted, or the lessons again"),
    Action("lessons.view", "view", "Show the next view: lessons, waiting clusters, tombstones"),
    Action("lessons.order", "order", "Order by the next: newest, first to expire, least used"),
    Action("lessons.preview-down", "turns down", "Scroll the turns below the list down", palette=False),
    Action("lessons.preview-up", "turns up", "Scroll the turns up", palette=False),
)

FOLDERS = (
    Action("folders.add", "add", "Add a folder of notes", palette=False),
    Action(
        "folders.remove",
        "remove",
        "Take the folder out of the index (asks first); its files stay",
        palette=False,
    ),
)

EVAL = (
    Action("eval.run", "run again", "Ask the questions of the last file again", palette=False),
    Action("eval.open", "search it", "Open the question in Search", palette=False),
)

DIALOG = (
    Action("dialog.close", "close", "Close without doing anything", palette=False),
    Action("dialog.down", "down", "Down", palette=False),
    Action("dialog.up", "up", "Up", palette=False),
    Action("dialog.half-down", "half page", "Down half a page", palette=False),
    Action("dialog.half-up", "half page", "Up half a page", palette=False),
    Action("dialog.top", "top", "To the top", palette=False),
    Action("dialog.bottom", "bottom", "To the bottom", palette=False),
)

CONFIRM = (
    Action("confirm.yes", "yes", "Do it", palette=False),
    Action("confirm.no", "no", "Do not", palette=False),
)

ASK = (
    Action("ask.cancel", "cancel", "Cancel", palette=False),
    Action("ask.down", "down", "Next line", palette=False),
    Action("ask.up", "up", "Line before", palette=False),
    Action("ask.complete", "complete", "Complete what is typed", palette=False),
)

LOG = (
    Action("log.view", "view", "Show the next view: the log, searches and asks, tokens"),
    Action("log.records", "log", "Show the log: what the engine did"),
    Action("log.queries", "searches", "Show searches and asks: what was asked, and what came of it"),
    Action("log.tokens", "tokens", "Show what language models read and wrote, day by day"),
    Action("log.follow", "follow", "Follow what is new, or stop following"),
    Action("log.level", "level", "Show less: warnings and errors, errors, all; or searches, asks, all"),
)

REGISTRY: dict[str, Action] = {
    action.id: action
    for actions in (APP, LIST, SEARCH, JOBS, DRIFT, LESSONS, LOG, FOLDERS, EVAL, DIALOG, CONFIRM, ASK)
    for action in actions
}


class Actor:
    """Answers actions by their ids, or says why one cannot be used now."""

    def unavailable(self, action: str) -> str:  # noqa: ARG002  (subclasses answer by action)
        """Why an action cannot be used now: a sentence for the user, or nothing when it can."""
        return ""

    def refused(self, reason: str) -> None:
        """Tell the user why not."""

    def action_act(self, action: str) -> None:
        """Run one action of the registry, or say why it cannot be used now."""
        reason = self.unavailable(action)
        if reason:
            self.refused(reason)
        else:
            getattr(self, REGISTRY[action].method)()
