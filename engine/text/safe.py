"""The one choke point between text that others wrote and a terminal.

A control character in a note, a file name or an error message could move the cursor, write to the
clipboard or show a line in another order than it is read. Here such characters become visible symbols.
Markup is another matter: give what comes from here to widgets as plain text, never as markup.

`visible` is for whoever lays text out. Under all of them, where text becomes bytes, a last line of defence
asks `steers`: the console for each row that it paints (`tui.painting`), the commands for all that is
written to a standard stream (`engine.doors.streams`).
"""

from __future__ import annotations

import re

_CONTROLS = [*range(0x20), 0x7F]
_SHOWN_BY_NUMBER = [*range(0x80, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]
"""C1; line and paragraph separators with the bidirectional embeddings and overrides; the isolates.

The marks U+200E, U+200F and U+061C stay: they reorder nothing beyond their neighbours, and Hebrew and
Arabic texts are full of them. So do zero-width characters: whoever lays out columns measures cells.
"""

_SYMBOLS = {
    **{chr(code): chr(0x2400 + code) for code in _CONTROLS if code != 0x7F},
    "\x7f": "\u2421",
    **{chr(code): f"\u27e6U+{code:04X}\u27e7" for code in _SHOWN_BY_NUMBER},
}

_UNSAFE_BUT_LINES = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = {
    (True, True): re.compile(f"[{_UNSAFE_BUT_LINES}]"),
    (True, False): re.compile(f"[\t{_UNSAFE_BUT_LINES}]"),
    (False, True): re.compile(f"[\n{_UNSAFE_BUT_LINES}]"),
    (False, False): re.compile(f"[\t\n{_UNSAFE_BUT_LINES}]"),
}
_SURROGATES = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def visible(text: str, *, keep_newlines: bool = True, keep_tabs: bool = True) -> str:
    r"""The text with everything that would steer a terminal shown as a symbol: ␛ for an escape character,
    ⟦U+202E⟧ for an override of direction, a C1 control or a line separator; surrogates as in `spelt`.

    Newlines and tabs stay unless told otherwise. A text without such characters comes back as it is, and
    so does a text that went through here before.
    """
    pattern = _UNSAFE[keep_newlines, keep_tabs]
    return pattern.sub(_symbol, text) if pattern.search(text) else text


def steers(text: str) -> bool:
    """Whether there is a character in it that must not reach a terminal within a row; newline and tab too."""
    return _UNSAFE[False, False].search(text) is not None


def blunted(text: str) -> str:
    """The text with each such character as one symbol of one cell: ␛, and � where there is no picture of it.

    For the last look at a row that is laid out already: it grows by no more than a cell for each.
    """
    return _UNSAFE[False, False].sub(_one_cell, text)


def spelt(text: str) -> str:
    r"""The text as UTF-8 can hold it. A byte of a file name that is not UTF-8, which Python keeps as half of
    a surrogate pair, becomes `\xff`: so a shell reads it in `$'…'`.
    """
    return _SURROGATES.sub(_spelt, text)


def _spelt(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _one_cell(match: re.Match[str]) -> str:
    symbol = _SYMBOLS.get(match[0], "")
    return symbol if len(symbol) == 1 else _REPLACEMENT


def _symbol(match: re.Match[str]) -> str:
    if "\ud800" <= match[0] <= "\udfff":
        return _spelt(match)
    return _SYMBOLS.get(match[0]) or f"\u27e6U+{ord(match[0]):04X}\u27e7"
