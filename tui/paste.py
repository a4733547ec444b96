"""What is pasted stays text: an escape character within a bracketed paste must not become keys.

Textual 8.2.8 ends its reading of a paste at the first escape sequence in it and hands what follows to the
keys, so that a text copied from a hostile page could press them. Terminals should take these characters
out of a paste; tmux does not. Bracketed paste: xterm, "XTerm Control Sequences", "Bracketed Paste Mode".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual._xterm_parser import XTermParser

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.message import Message

_ESCAPE, _SHOWN = "\x1b", "\N{SYMBOL FOR ESCAPE}"
_START, _END = "\x1b[200~", "\x1b[201~"


class PasteFilter:
    """Reads what the terminal sends, in whatever portions, and shows escape characters within a paste."""

    def __init__(self) -> None:
        self._inside = False
        self._seen = ""  # outside: the end of what was passed on, which a start may begin in
        self._held = ""  # inside: an escape sequence that may become the end

    def clean(self, data: str) -> str:
        """The same with every escape character of a paste as a visible symbol."""
        passed = ""
        while data:
            part, data = self._within(data) if self._inside else self._without(data)
            passed += part
        return passed

    def _without(self, data: str) -> tuple[str, str]:
        known = len(self._seen)
        at = (self._seen + data).find(_START)
        if at < 0:
            self._seen = (self._seen + data)[1 - len(_START) :]
            return data, ""
        cut = at + len(_START) - known
        self._inside, self._seen = True, ""
        return data[:cut], data[cut:]

    def _within(self, data: str) -> tuple[str, str]:
        text, self._held = self._held + data, ""
        at = text.find(_END)
        if at >= 0:
            self._inside = False
            return text[:at].replace(_ESCAPE, _SHOWN) + _END, text[at + len(_END) :]
        for length in range(len(_END) - 1, 0, -1):
            if text.endswith(_END[:length]):
                text, self._held = text[:-length], text[-length:]
                break
        return text.replace(_ESCAPE, _SHOWN), ""


class Parser(XTermParser):
    """Textual's parser behind the filter."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._filter = PasteFilter()

    def feed(self, data: str) -> Iterable[Message]:
        """See `XTermParser.feed`. An empty text means the end there: what is held back is not one."""
        cleaned = self._filter.clean(data)
        return super().feed(cleaned) if cleaned or not data else ()
