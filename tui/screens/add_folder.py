"""Asking for a folder of notes, with completion from the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.message import Message
from textual.widgets import Input

from engine.errors import NoctuaryError
from tui.keymap import bindings
from tui.paths import Completion, complete
from tui.screens.dialog import Dialog
from tui.text import cut_path, line
from tui.widgets.label import Label
from tui.widgets.line_input import LineInput
from tui.widgets.row_list import Column, Row, RowList

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine.notes.model import Folder


class AddFolder(Dialog["Folder"]):
    """Type a folder; Tab completes, Enter adds. Answers with the folder that was added."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("ask")]

    class Completed(Message):
        """The disk was read for what was typed."""

        def __init__(self, typed: str, completion: Completion, *, insert: bool) -> None:
            super().__init__()
            self.typed = typed
            self.completion = completion
            self.insert = insert

    class Added(Message):
        """The engine answered."""

        def __init__(self, folder: Folder | None, error: NoctuaryError | None = None) -> None:
            super().__init__()
            self.folder = folder
            self.error = error

    def __init__(self, why: str = "") -> None:
        super().__init__("Add a folder of notes")
        self._why = Label(line(why), classes="why")
        self._input = LineInput("a folder with Markdown files, such as ~/notes")
        self._rows = RowList((Column("Folders here", path=True),))
        self._rows.can_focus = False
        self._chose = False

    def inside(self) -> ComposeResult:
        """Why it is asked, the input, and what the disk offers."""
        yield self._why
        yield self._input
        yield self._rows

    def on_mount(self) -> None:
        """Begin at home."""
        self._hint()
        self._input.value = "~/"
        self._input.cursor_position = 2
        self._input.focus()

    def _hint(self) -> None:
        self.say("Tab completes · ↑ ↓ choose · Enter adds · Esc closes")

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._hint()
        self._chose = False
        self._look(event.value, insert=False)

    def _look(self, typed: str, *, insert: bool) -> None:
        self.host.spawn(self._complete(typed, insert=insert), "complete", "read the folder names")

    async def _complete(self, typed: str, *, insert: bool) -> None:
        found = await asyncio.to_thread(complete, typed)
        self.post_message(self.Completed(typed, found, insert=insert))

    @on(Completed)
    def _completed(self, message: Completed) -> None:
        if message.typed != self._input.value:
            return
        self._rows.put([Row(path, (path,)) for path in message.completion.folders])
        if message.insert and message.completion.text != message.typed:
            self._put(message.completion.text)

    def _put(self, text: str) -> None:
        self._input.value = text
        self._input.cursor_position = len(text)

    def do_complete(self) -> None:
        """The folder that was chosen, else as much of the path as is certain."""
        row = self._rows.current
        if self._chose and row is not None:
            self._put(row.key)
        else:
            self._look(self._input.value, insert=True)

    def do_down(self) -> None:
        """Choose the next folder."""
        self._chose = True
        self._rows.move(1)

    def do_up(self) -> None:
        """Choose the folder before."""
        self._chose = True
        self._rows.move(-1)

    def do_cancel(self) -> None:
        """Close without adding."""
        self.dismiss(None)

    @on(Input.Submitted)
    def _add(self, event: Input.Submitted) -> None:
        typed = event.value.strip()
        if not typed:
            self.say("Type a folder first")
            return
        self.say(f"Adding {cut_path(typed, 40)}…")
        self.host.spawn(self._ask(Path(typed)), "add-folder", "add a folder")

    async def _ask(self, path: Path) -> None:
        engine = self.host.engine
        if engine is None:
            return
        try:
            folder = await engine.notes.add_folder(path)
        except NoctuaryError as error:
            self.post_message(self.Added(None, error))
        else:
            self.post_message(self.Added(folder))

    @on(Added)
    def _added(self, message: Added) -> None:
        if message.error is not None:
            self.say(str(message.error), error=True)
        else:
            self.dismiss(message.folder)
