"""What of a turn its user says in words of his own: not code, quotations, pasted text or play.

A fact or a correction is taken from a turn only where nothing speaks against its being the user's own word:
rather miss one than believe what a pasted mail says.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.memory import phrasing

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_READ = 64_000
"""Characters of a turn that are looked at: longer ones are pasted."""

MOST_OPENINGS = 4
"""Of `hello Tom, well, no,` and the like before a statement."""

_LINE = re.compile(r"[^\n]+")
_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_FOREIGN_LINE = re.compile(r"[ ]{0,3}[>|]|[ ]{4,}\S|\t")
_QUOTED = re.compile(
    r'`[^`\n]{1,2000}`|"[^"\n]{1,2000}"'
    "|\u201c[^\u201d\u201c\n]{1,2000}[\u201d\u201c]|\u201e[^\u201c\u201d\n]{1,2000}[\u201c\u201d]"
    "|\u00ab[^\u00bb\n]{1,2000}\u00bb|\u00bb[^\u00ab\n]{1,2000}\u00ab"
    "|\u300c[^\u300d\n]{1,2000}\u300d|\u300e[^\u300f\n]{1,2000}\u300f"
)
_TAG = re.compile(r"<(?P<end>/?)(?P<name>[A-Za-z][\w-]{0,40})(?:\s[^<>\n]{0,200})?>")
_STOPS = "!?;\u061f\u0964\u3002\uff01\uff1f\uff1b"
_SENTENCE = re.compile(rf"(?:[^.{_STOPS}]|\.(?=\S))+")
_ABBREVIATED = re.compile(r"(?:^|\W)(?:dr|mr|mrs|ms|st|prof|jr|sr|[a-z])$", re.IGNORECASE)
_DAY = re.compile(r"(?:^|\D)\d{1,2}$")
_MONTH = re.compile(r"\.\s(?:jan|feb|m\xe4r|apr|mai|jun|jul|aug|sep|okt|nov|dez)", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:(?:[-*+\u2022\u00bf\u00a1]|\d{1,3}[.)])\s+|[\u00bf\u00a1])*")
_COLON = re.compile(r":(?=\s|$)|\uff1a")


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the user's own sentences stand, without their marks and bullets, in order.

    What follows a colon is somebody else's, unless what stands before it announces the user's own facts;
    what follows an invitation to play a part, or to work on a text, is nobody's.
    """
    read = text[:MOST_READ]
    tagged = _tagged(read)
    fence = ""
    for line in _LINE.finditer(read):
        mark = _FENCE.match(line[0])
        if mark or fence:
            fence = _next_fence(fence, mark[1] if mark else "", line[0])
            continue
        if _FOREIGN_LINE.match(line[0]):
            continue
        if any(start <= line.start() < end for start, end in tagged):
            continue
        for start, end, goes_on in _of_line(read, line.start(), line.end(), tagged):
            if start < end:
                yield start, end
            if not goes_on:
                return


def _next_fence(fence: str, mark: str, line: str) -> str:
    """The fence that is open after a line: of code, of which nothing is the user's word."""
    if not fence:
        return mark
    closes = mark.startswith(fence) and not line.strip(" `~\r")
    return "" if closes else fence


def _of_line(
    text: str, start: int, end: int, tagged: list[tuple[int, int]]
) -> Iterator[tuple[int, int, bool]]:
    """The own sentences of a line, each with whether anything after it may be the user's."""
    foreign = [*(found.span() for found in _QUOTED.finditer(text, start, end)), *tagged]
    for first, last in _parts(text, start, end):
        begin = _past_bullet(text, first, last)
        if any(left <= begin < right for left, right in foreign):
            continue
        if phrasing.everywhere("play").match(text, begin, last):
            yield begin, begin, False
            return
        colon = _COLON.search(text, begin, last)
        if colon is None:
            yield begin, last, True
            continue
        announced = _announces(text[begin : colon.start()])
        yield begin, colon.start(), announced or bool(text[colon.end() : end].strip())
        if not announced:
            return
        yield _past_bullet(text, colon.end(), last), last, True


def _parts(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The sentences of a line. `Dr.`, `J.` and the `3.` of `3. März` end none."""
    begin = None
    for found in _SENTENCE.finditer(text, start, end):
        begin = found.start() if begin is None else begin
        if _abbreviated(text, found.end()):
            continue
        yield begin, found.end()
        begin = None
    if begin is not None:
        yield begin, end


def _abbreviated(text: str, end: int) -> bool:
    before = max(end - 6, 0)
    if _DAY.search(text, before, end):
        return bool(_MONTH.match(text, end))
    return text.startswith(".", end) and bool(_ABBREVIATED.search(text, before, end))


def _past_bullet(text: str, start: int, end: int) -> int:
    bullet = _BULLET.match(text, start, end)
    return bullet.end() if bullet else start


def _announces(text: str) -> bool:
    return bool(phrasing.announcement().match(text)) and not phrasing.everywhere("others").match(text)


def beginnings(text: str, start: int, end: int) -> list[int]:
    """Where what a sentence says may begin: at its start, and after each `well`, `no,` or `hello Tom,`."""
    places = [start]
    while len(places) <= MOST_OPENINGS:
        opened = phrasing.opening().match(text, places[-1], end)
        if opened is None or opened.end() == places[-1]:
            break
        places.append(opened.end())
    return places


def _tagged(text: str) -> list[tuple[int, int]]:
    """Text between `<name>` and the last `</name>` after it: a document, or what was recalled."""
    opened: dict[str, int] = {}
    closed: dict[str, int] = {}
    for tag in _TAG.finditer(text):
        name = tag["name"].lower()
        if not tag["end"]:
            opened.setdefault(name, tag.start())
        elif name in opened:
            closed[name] = tag.end()
    return [(opened[name], end) for name, end in closed.items()]
