"""The list of citations: a few lines for each, drawn only when they come on the screen.

A citation is known by its key. New results are laid over the old ones: marks stay with their keys, and
the cursor does when it is asked to. Freshness is filled in later, for what can be seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from tui.widgets import citation_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from engine.notes.model import Citation, Freshness
    from tui.widgets.marks import Marks

GUTTER = 3
"""Cells before the text: cursor, mark, a space. As in every other list."""

PASSAGE = 2
"""Lines of the passage: enough to judge by, and six citations fit on 24 lines."""


def key_of(citation: Citation) -> str:
    """What a citation is known by. The text belongs to it: two parts of one long line share their lines."""
    return f"{citation.folder}\0{citation.reference}\0{citation.text}"


class CitationList(ScrollView, can_focus=True, inherit_bindings=False):
    """Citations with a cursor and marks, driven by the actions of the pane."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"citation--cursor", "citation--blurred"}
    DEFAULT_CSS = """
    CitationList { overflow-x: hidden; scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    .citation--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
    .citation--blurred { background: $block-cursor-blurred-background; color: $foreground; }
    """

    class Moved(Message):
        """Another citation is under the cursor, or other ones are on the screen."""

    class Chosen(Message):
        """A citation was clicked twice."""

    def __init__(self, marks: Marks) -> None:
        super().__init__()
        self.marks = marks
        self.citations: tuple[Citation, ...] = ()
        self.keys: tuple[str, ...] = ()
        self.cursor = 0
        self.explaining = False
        self.freshness: dict[str, Freshness] = {}
        self.numbers: dict[str, int] = {}
        """Those that the marks of an answer have, by key."""
        self._folders = False
        self._drawn: dict[tuple[int, int], list[Strip]] = {}

    @property
    def current(self) -> Citation | None:
        """The citation under the cursor."""
        return self.citations[self.cursor] if self.cursor < len(self.citations) else None

    @property
    def each(self) -> int:
        """Lines of one citation."""
        return 1 + PASSAGE + self.explaining

    @property
    def page(self) -> int:
        """Citations that fit on the screen."""
        return max(self.size.height // self.each, 1)

    @property
    def on_screen(self) -> tuple[Citation, ...]:
        """The citations that can be seen now, also in part."""
        first = self.scroll_offset.y // self.each
        last = (self.scroll_offset.y + max(self.size.height, 1) - 1) // self.each
        return self.citations[first : last + 1]

    # Content ---------------------------------------------------------------------------------

    def put(self, citations: Sequence[Citation], *, stay: bool) -> None:
        """Show these; with `stay` the cursor keeps to its citation, else it goes to the first."""
        if stay and self.citations == tuple(citations):
            self.post_message(self.Moved())  # nothing to paint, but the disk may have changed
            return
        here = self.keys[self.cursor] if self.cursor < len(self.keys) else None
        self.citations = tuple(citations)
        self.keys = tuple(key_of(citation) for citation in self.citations)
        self._folders = len({citation.folder for citation in self.citations}) > 1
        self.freshness = {key: self.freshness[key] for key in self.keys if key in self.freshness}
        last = max(len(self.keys) - 1, 0)
        if stay:
            self.cursor = self.keys.index(here) if here in self.keys else min(self.cursor, last)
        else:
            self.cursor = 0
        self._measure()
        self.post_message(self.Moved())

    def explain(self, *, on: bool) -> None:
        """Show or hide where each citation stood in each list."""
        self.explaining = on
        self._measure()

    def set_freshness(self, key: str, freshness: Freshness) -> None:
        """Fill in what the disk says of a citation."""
        if key in self.keys and self.freshness.get(key) != freshness:
            self.freshness[key] = freshness
            self._forget(self.keys.index(key))

    def redraw(self) -> None:
        """Draw everything again."""
        self._drawn.clear()
        self.refresh()

    def _measure(self) -> None:
        self._drawn.clear()
        self.virtual_size = Size(self.size.width, len(self.citations) * self.each)
        self._reveal()
        self.refresh()

    def _forget(self, index: int) -> None:
        for key in [key for key in self._drawn if key[0] == index]:
            del self._drawn[key]
        self.refresh(Region(0, index * self.each - self.scroll_offset.y, self.size.width, self.each))

    # Moving ----------------------------------------------------------------------------------

    def move_to(self, index: int) -> None:
        """Put the cursor on a citation."""
        before, self.cursor = self.cursor, max(min(index, len(self.citations) - 1), 0)
        if before != self.cursor:
            self._forget(before)
            self._forget(self.cursor)
            self._reveal()
            self.post_message(self.Moved())

    def _reveal(self) -> None:
        """Scroll no further than lets the whole citation under the cursor be seen."""
        top, height = self.cursor * self.each, max(self.size.height, self.each)
        y = min(self.scroll_offset.y, top)
        if top + self.each > y + height:
            y = top + self.each - height
        if y != self.scroll_offset.y:
            self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Other citations are on the screen."""
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Other widths, other lines."""
        self._measure()
        self.post_message(self.Moved())

    def on_focus(self) -> None:
        """The cursor looks different with the focus."""
        self._forget(self.cursor)

    def on_blur(self) -> None:
        """And without."""
        self._forget(self.cursor)

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor; a second one opens."""
        index = (event.y + self.scroll_offset.y) // self.each
        if index < len(self.citations):
            self.move_to(index)
            if event.chain == 2:
                self.post_message(self.Chosen())

    # Drawing ---------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        """Other colours."""
        super().notify_style_update()
        self._drawn.clear()

    def render_line(self, y: int) -> Strip:
        """One line of the citation that is scrolled there."""
        index, line = divmod(y + self.scroll_offset.y, self.each)
        width = self.scrollable_content_region.width
        if index >= len(self.citations):
            return Strip.blank(width, self.rich_style)
        if (index, width) not in self._drawn:
            self._drawn[index, width] = self._draw(index, width)
        return self._drawn[index, width][line]

    def _draw(self, index: int, width: int) -> list[Strip]:
        citation, key = self.citations[index], self.keys[index]
        here, room = index == self.cursor, max(width - GUTTER, 1)
        label = f"[{self.numbers[key]}] " if key in self.numbers else ""
        folder = citation.folder.name if self._folders else ""
        head = citation_text.header(
            citation, self.freshness.get(key), max(room - len(label), 1), folder=folder
        )
        lines = [*citation_text.passage(citation, room, PASSAGE)]
        lines += [Content()] * (PASSAGE - len(lines))
        if self.explaining:
            lines.append(citation_text.explained(citation.explanation, room))
        cursor = "▸" if here else " "
        mark = Content.styled("●", "$text-warning") if key in self.marks else Content(" ")
        first = Content.assemble(cursor, mark, " ", (label, "bold $text-accent"), head)
        return [
            self._strip(first, width, cursor=here),
            *(self._strip(Content(" " * GUTTER) + x, width) for x in lines),
        ]

    def _strip(self, content: Content, width: int, *, cursor: bool = False) -> Strip:
        part = "citation--cursor" if self.has_focus else "citation--blurred"
        style = self.get_visual_style(part) if cursor else self.visual_style
        # On the cursor's line colours of our own may be unreadable: signs and words say the same.
        shown = citation_text.row(content, width)
        strips = Visual.to_strips(self, shown.without_spans if cursor else shown, width, 1, style)
        return strips[0].adjust_cell_length(width, style.rich_style) if strips else Strip.blank(width)
