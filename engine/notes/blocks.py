"""Finds the blocks and the headings of a Markdown text: where it may be cut and where it may not.

One pass over the lines, linear whatever the text. It is not a Markdown parser: it knows just enough
to say which lines stand together (a paragraph, a fenced block, a table, a list with blank lines
between its items, front matter) and which lines are headings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_TITLE = 200
"""Characters of a heading that are kept in a heading path: a path is stored with every chunk below it."""

_HEADING_LINE = 500
"""A line longer than this is no heading whatever it starts with: headings are never cut."""

_FRONT_MATTER_LINES = 500
"""A first `---` whose closing line is farther away than this is a thematic break, not front matter."""

_SETEXT_LINES = 3
"""More lines than this above a `---` are a paragraph whose author forgot the blank line."""

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_SETEXT = re.compile(r" {0,3}(?:=+|--+)[ \t]*$")
_FENCE = re.compile(r"([ \t>]*)(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$")
_ITEM = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_BREAK = re.compile(r"[ \t]*([-*])(?:[ \t]*\1){2,}[ \t]*$")

_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

_HTML = {"<tab": "</table", "<pre": "</pre", "<!--": "-->"}
"""HTML whose blank lines and `#` are its own: how its first line starts and what ends it."""

_HTML_LINES = 400
"""Farther away than this nobody closes a table; the bound keeps a file of unclosed ones linear."""

_ORDINARY = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz[(\"'")
"""First characters of most lines; such a line is paragraph text and needs no closer look."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `start` to `end` (0-based, end exclusive) that stand together.

    A heading has a `level` of 1 to 6 and its `title`; every other block has level 0.
    """

    start: int
    end: int
    level: int = 0
    title: str = ""


def split_lines(text: str) -> list[str]:
    r"""The lines of a text, cut at `\n`, `\r\n` and `\r` only, as editors and `sed -n` count them.

    `str.splitlines` also cuts at form feeds, U+0085 and U+2028, which would shift every citation below.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n")


def is_blank(line: str) -> bool:
    """Whether a line holds nothing but white space."""
    return not line or line.isspace()


def find_fences(lines: Sequence[str], first: int = 0) -> dict[int, int]:
    """The fenced code blocks from line `first` on: opening line → closing line (both 0-based).

    A fence that is never closed ends before the next heading that follows a blank line, so that the
    rest of the file keeps its headings; without one it ends with the file.
    """
    marks = [
        (at, match)
        for at in range(first, len(lines))
        if ("```" in (line := lines[at]) or "~~~" in line) and (match := _FENCE.match(line))
    ]
    reach = _closing_reach(marks)
    fences: dict[int, int] = {}
    position, free = 0, first
    while position < len(marks):
        at, match = marks[position]
        fence, info = match[2], match[3]
        if at < free or (fence[0] == "`" and "`" in info):
            position += 1
            continue
        if reach[position].get(_fence_key(match), 0) >= len(fence):
            close = position + 1
            while not _closes(match, marks[close][1]):
                close += 1
            fences[at], position = marks[close][0], close + 1
        else:
            fences[at], position = _end_of_unclosed(lines, at), position + 1
        free = fences[at] + 1
    return fences


_Mark = tuple[int, "re.Match[str]"]


def _closing_reach(marks: Sequence[_Mark]) -> list[dict[str, int]]:
    """For each mark, the longest closing fence of each kind after it: an unclosed fence is then known
    at once and a file of ten thousand of them stays linear.
    """
    longest: dict[str, int] = {}
    reach: list[dict[str, int]] = []
    for _, match in reversed(marks):
        reach.append(longest)
        if not match[3].strip():
            key = _fence_key(match)
            if len(match[2]) > longest.get(key, 0):
                longest = {**longest, key: len(match[2])}
    reach.reverse()
    return reach


def _fence_key(match: re.Match[str]) -> str:
    """The kind of a fence: its character, and whether it stands in a quotation."""
    return match[2][0] + (">" if ">" in match[1] else "")


def _closes(opening: re.Match[str], mark: re.Match[str]) -> bool:
    return not mark[3].strip() and _fence_key(mark) == _fence_key(opening) and len(mark[2]) >= len(opening[2])


def _end_of_unclosed(lines: Sequence[str], opening: int) -> int:
    end = next(
        (
            at
            for at in range(opening + 2, len(lines))
            if lines[at].startswith("#") and is_blank(lines[at - 1]) and _ATX.match(lines[at])
        ),
        len(lines),
    )
    while is_blank(lines[end - 1]):
        end -= 1
    return end - 1


def scan(lines: Sequence[str], fences: Mapping[int, int]) -> Iterator[Block]:
    """The blocks of a text in order; together they hold every line that is not blank.

    `fences` is what `find_fences` found in the same lines, from `front_matter_end` on.
    """
    at = front_matter_end(lines)
    if at:
        yield Block(0, at)
    count = len(lines)
    while at < count:
        line = lines[at]
        if not line or line.isspace():
            at += 1
        elif heading := _atx_heading(line, at):
            yield heading
            at += 1
        else:
            run = _Run(lines, fences, at)
            yield from run.blocks()
            at = run.at


def front_matter_end(lines: Sequence[str]) -> int:
    """The line after the front matter, 0 without any. What stands inside need not be YAML."""
    fence = lines[0].rstrip()
    if fence not in {"---", "+++"} or len(lines) < 2 or is_blank(lines[1]):
        return 0
    closing = {"---", "..."} if fence == "---" else {"+++"}
    for at in range(1, min(len(lines), _FRONT_MATTER_LINES)):
        if lines[at].rstrip() in closing:
            return at + 1
    return 0


def _atx_heading(line: str, at: int) -> Block | None:
    if "#" not in line[:4] or len(line) > _HEADING_LINE:
        return None
    match = _ATX.match(line)
    if match is None:
        return None
    title = line[match.end() :].rstrip()
    bare = title.rstrip("#")
    if bare != title and (not bare or bare[-1] in " \t"):
        title = bare
    return Block(at, at + 1, len(match[1]), clean_title(title))


def clean_title(title: str) -> str:
    """A heading's title without Markdown's escapes, of bounded length."""
    title = _ESCAPE.sub(r"\1", title.strip())
    return title if len(title) <= MAX_TITLE else title[: MAX_TITLE - 1].rstrip() + "…"


class _Run:
    """Walks one run of lines that stand together, from `at` to where a blank line or heading ends it."""

    def __init__(self, lines: Sequence[str], fences: Mapping[int, int], at: int) -> None:
        self._lines = lines
        self._fences = fences
        self._start = at
        self._paragraph: int | None = None  # first line of the paragraph that a setext underline would end
        self._in_list = False
        self.at = at

    def blocks(self) -> Iterator[Block]:
        """The run as one block, or as a block and the setext heading it ends with."""
        lines, count = self._lines, len(self._lines)
        while self.at < count:
            line = lines[self.at]
            if line[:1] in _ORDINARY:
                if self._paragraph is None and not self._in_list:
                    self._paragraph = self.at
                self.at += 1
            elif is_blank(line):
                resume = self._resume()
                if resume is None:
                    break
                self.at = resume
            elif self._underlines(line):
                yield from self._setext(line)
                return
            elif not self._take(line):
                break
        yield Block(self._start, self.at)

    def _take(self, line: str) -> bool:
        """Adds a line that is not plain text; False when it is a heading and so not of this run."""
        close = self._fences.get(self.at)
        if close is not None:
            self._in_list = self._in_list or _ITEM.match(line) is not None
            self._paragraph = None
            self.at = close + 1
            return True
        if not (self._in_list and line[:2].isspace()) and _atx_heading(line, self.at):
            return False
        if _ITEM.match(line) and not _BREAK.match(line):
            self._in_list, self._paragraph = True, None
        elif line[0] == "<":
            self._paragraph = None
            self.at = self._html_end(line)
        elif line[0] in "|>" or line[:4].isspace() or line[0] == "\t":
            self._paragraph = None
        elif self._paragraph is None and not self._in_list:
            self._paragraph = self.at
        self.at += 1
        return True

    def _html_end(self, line: str) -> int:
        """The last line of an HTML table, comment or preformatted text that starts here; else this line."""
        closing = _HTML.get(line[:4].lower())
        if closing is None:
            return self.at
        for at in range(self.at, min(self.at + _HTML_LINES, len(self._lines))):
            if closing in self._lines[at].lower():
                return at
        return self.at

    def _resume(self) -> int | None:
        """Where a list goes on after blank lines: at an item or at an indented line; None when it ends."""
        if not self._in_list:
            return None
        at = self.at
        while at < len(self._lines) and is_blank(self._lines[at]):
            at += 1
        if at == len(self._lines):
            return None
        line = self._lines[at]
        if line[0] == "\t" or line[:2].isspace() or (_ITEM.match(line) and not _BREAK.match(line)):
            return at
        return None

    def _underlines(self, line: str) -> bool:
        first = self._paragraph
        if first is None or not 0 < self.at - first <= _SETEXT_LINES or not _SETEXT.match(line):
            return False
        return sum(map(len, self._lines[first : self.at])) <= MAX_TITLE

    def _setext(self, line: str) -> Iterator[Block]:
        """The paragraph above the underline is the heading; what stands above it is a block of its own."""
        first = self.at if self._paragraph is None else self._paragraph
        if first > self._start:
            yield Block(self._start, first)
        title = " ".join(part.strip() for part in self._lines[first : self.at])
        self.at += 1
        yield Block(first, self.at, 1 if "=" in line else 2, clean_title(title))
