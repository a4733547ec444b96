"""The folders of notes: what is indexed, how it is watched, and how to add or remove one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.message import Message

from engine.errors import NoctuaryError
from engine.text.amounts import count
from tui.keymap import bindings
from tui.screens.add_folder import AddFolder
from tui.screens.dialog import Confirm
from tui.screens.rows_dialog import RowsDialog
from tui.widgets.row_list import Column, Row, RowList
from tui.widgets.status_line import SIGNS, is_silent, mode_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.binding import BindingType

    from engine.notes.model import Folder, WatchState


@dataclass(frozen=True, slots=True)
class FoldersSnapshot:
    """The folders and their watchers at one moment."""

    folders: tuple[Folder, ...]
    watchers: tuple[WatchState, ...]


class FoldersScreen(RowsDialog[None]):
    """Lists the folders."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("dialog", "folders")]
    scope = "folders"

    class Read(Message):
        """The folders were read, or something was done to them."""

        def __init__(self, snapshot: FoldersSnapshot | None, said: str = "", *, error: bool = False) -> None:
            super().__init__()
            self.snapshot = snapshot
            self.said = said
            self.error = error

    def __init__(self) -> None:
        columns = (
            Column("Folder", path=True, share=3),
            Column("Notes", 9, right=True),
            Column("Watched", share=2),
        )
        super().__init__("Folders of notes", RowList(columns))
        self._snapshot = FoldersSnapshot((), ())

    def inside(self) -> ComposeResult:
        """The folders."""
        yield self._rows

    def on_mount(self) -> None:
        """Read them."""
        self._rows.nothing = "No folder yet."
        self._rows.focus()
        self._hint()
        self._read()

    def _hint(self) -> None:
        keys = self.host.keys
        self.say(
            " · ".join(
                f"{keys.shown(action)} {label}"
                for action, label in (
                    ("folders.add", "add"),
                    ("folders.remove", "remove"),
                    ("dialog.close", "close"),
                )
            )
        )

    def _read(self) -> None:
        self.host.spawn(self._fetch(), "folders", "read the folders")

    async def _fetch(self, said: str = "") -> None:
        engine = self.host.engine
        if engine is None:
            return
        try:
            folders = await engine.notes.folders()
            status = await engine.notes.status()
        except NoctuaryError as error:
            self.post_message(self.Read(None, f"{error.title}: {error}", error=True))
        else:
            self.post_message(self.Read(FoldersSnapshot(tuple(folders), status.watchers), said))

    @on(Read)
    def _show(self, message: Read) -> None:
        if message.snapshot is not None:
            self._snapshot = message.snapshot
            self._rows.put(self._lines(message.snapshot))
        if message.said:
            self.say(message.said, error=message.error)

    def _lines(self, snapshot: FoldersSnapshot) -> Sequence[Row]:
        watchers = {each.folder: each for each in snapshot.watchers}
        return [
            Row(str(each.path), (str(each.path), f"{each.files:,}", self._watched(watchers.get(each.path))))
            for each in snapshot.folders
        ]

    def _watched(self, watcher: WatchState | None) -> str:
        if watcher is None:
            return "not watched"
        if is_silent(watcher, self.host.now()):
            return "! silent"
        reason = f": {watcher.reason}" if watcher.reason else ""
        process = f" by {watcher.process}" if watcher.process else ""
        return f"{SIGNS[watcher.mode][0]} {mode_words(watcher)}{process}{reason}"

    def unavailable(self, action: str) -> str:
        """Removing needs a folder."""
        return "There is no folder to remove" if action == "folders.remove" and not self._rows.rows else ""

    # Keys ------------------------------------------------------------------------------------

    def do_add(self) -> None:
        """Add one."""
        self.app.push_screen(AddFolder(), self._added)

    def _added(self, folder: Folder | None) -> None:
        if folder is not None:
            self.host.spawn(self._fetch(f"Added {folder.path}"), "folders", "read the folders")

    def do_remove(self) -> None:
        """Take one out of the index, after a yes."""
        row = self._rows.current
        folder = next((each for each in self._snapshot.folders if row and str(each.path) == row.key), None)
        if folder is None:
            return
        detail = f"Out of the index: {count(folder.files, 'note')}. Nothing on the disk is touched."
        question = Confirm(f"Remove {folder.path}?", "folders.remove", detail=detail)
        self.app.push_screen(question, lambda yes: self._remove(folder) if yes else None)

    def _remove(self, folder: Folder) -> None:
        self.host.spawn(self._ask(folder), "folders", "remove a folder")

    async def _ask(self, folder: Folder) -> None:
        engine = self.host.engine
        if engine is None:
            return
        try:
            await engine.notes.remove_folder(folder.id)
        except NoctuaryError as error:
            self.post_message(self.Read(None, f"{error.title}: {error}", error=True))
        else:
            await self._fetch(f"Removed {folder.path}")
