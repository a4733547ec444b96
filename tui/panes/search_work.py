"""The workers of the search pane: each does one thing, posts messages and never touches a widget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from engine.errors import NoctuaryError
from engine.notes.model import Freshness, FreshnessState
from engine.text.amounts import count
from tui.clipboard import copy
from tui.editor import edit
from tui.messages import Flash

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.widget import Widget

    from engine import Engine
    from engine.notes.model import Citation, Preview
    from tui.app import NoctuaryApp

CONTEXT = 8
"""Lines of context above and below the cited ones in the preview."""


class Checked(Message):
    """What the disk says of a citation."""

    def __init__(self, citation: Citation, freshness: Freshness) -> None:
        super().__init__()
        self.citation = citation
        self.freshness = freshness


class Previewed(Message):
    """A preview was read, or why not."""

    def __init__(self, citation: Citation, preview: Preview | None, why: str = "") -> None:
        super().__init__()
        self.citation = citation
        self.preview = preview
        self.why = why


class Returned(Message):
    """The editor ended: what is shown may be old."""


class FoldersRead(Message):
    """The folders that a search can be narrowed to."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__()
        self.folders = folders


async def check(pane: Widget, engine: Engine, citations: Sequence[Citation]) -> None:
    """Check citations against the disk, one after the other, and tell each as it is known."""
    for citation in citations:
        try:
            freshness = await engine.notes.freshness(citation)
        except NoctuaryError:
            continue  # it stays unchecked, which is what the screen says of it
        pane.post_message(Checked(citation, freshness))


async def read_preview(pane: Widget, engine: Engine, citation: Citation) -> None:
    """Read the cited lines."""
    try:
        preview = await engine.notes.preview(citation, context=CONTEXT)
    except NoctuaryError as error:
        pane.post_message(Previewed(citation, None, f"{error.title}: {error}"))
    else:
        pane.post_message(Previewed(citation, preview))


async def read_folders(pane: Widget, engine: Engine) -> None:
    """Read the folders."""
    try:
        folders = await engine.notes.folders()
    except NoctuaryError as error:
        pane.post_message(Flash(f"{error.title}: {error}", error=True))
    else:
        pane.post_message(FoldersRead([folder.path for folder in folders]))


async def copy_text(pane: Widget, text: str, what: str) -> None:
    """Copy a text, and say by which route it went, and `what` it is."""
    copied = await copy(pane.app, text)
    pane.post_message(Flash(f"{copied.sentence} ({what})"))  # the route first: a path may be long


async def copy_lines(pane: Widget, text: str) -> None:
    """Copy, and say what went by which route."""
    lines = text.count("\n") + 1
    await copy_text(pane, text, text if lines == 1 else count(lines, "citation"))


async def open_editor(pane: Widget, host: NoctuaryApp, citation: Citation) -> None:
    """Open the editor where the cited text stands now, and tell when it has ended."""
    try:
        freshness = Freshness(FreshnessState.SAME)
        if host.engine is not None:
            freshness = await host.engine.notes.freshness(citation)
        await edit(host, citation.file, freshness.line_start or citation.line_start, host.settings)
    except NoctuaryError as error:
        pane.post_message(Flash(f"{error.title}: {error}", error=True))
    pane.post_message(Returned())
