"""Text that means harm to a terminal, and what of it a terminal would have obeyed, told without the code under test."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MARK = "OWNED"
"""In every payload that could be read after all: where it is never seen, a test has shown nothing."""

OSC = "\x1b]"
STEERING = {
    "clipboard, ended by a bell": f"{OSC}52;c;T1dORUQ=\x07{MARK}",
    "clipboard, ended by ST": f"{OSC}52;c;T1dORUQ=\x1b\\{MARK}",
    "title and icon": f"{OSC}0;{MARK}\x07",
    "title": f"{OSC}2;{MARK}\x1b\\",
    "link": f"{OSC}8;;http://{MARK}.example\x1b\\x{OSC}8;;\x1b\\",
    "working folder": f"{OSC}7;file:///{MARK}\x07",
    "DCS": f"\x1bPq#0{MARK}\x1b\\",
    "tmux passthrough": f"\x1bPtmux;\x1b{OSC}0;{MARK}\x07\x1b\\",
    "APC": f"\x1b_{MARK}\x1b\\",
    "PM": f"\x1b^{MARK}\x1b\\",
    "SOS": f"\x1bX{MARK}\x1b\\",
    "erase": f"\x1b[2J\x1b[3J{MARK}",
    "move": f"\x1b[1;1H\x1b[5A{MARK}",
    "colour": f"\x1b[31;5m{MARK}",
    "where is the cursor": f"\x1b[6n{MARK}",
    "what are you": f"\x1b[c\x1b[>c\x1bZ{MARK}",
    "report the title": f"\x1b[21t{MARK}",
    "reset": f"\x1bc\x1b[!p{MARK}",
    "letters as lines": f"\x1b(0\x0e{MARK}\x0f",
    "other screen": f"\x1b[?1049l\x1b[?1000h{MARK}",
    "8-bit CSI": f"\x9b2J\x9b6n{MARK}",
    "8-bit OSC": f"\x9d0;{MARK}\x9c",
    "8-bit DCS": f"\x90q{MARK}\x9c",
    "8-bit next line": f"\x85\x84\x8d{MARK}",
    "overrides": "".join(map(chr, range(0x202A, 0x202F))) + MARK,
    "isolates": "".join(map(chr, range(0x2066, 0x206A))) + MARK,
    "line separators": f"\u2028\u2029{MARK}",
    "bell, backspace, return": f"\x07\x08\x08\r{MARK}",
    "rubout and blanks": f"\x7f\x0b\x0c{MARK}",
    "line feed and tab": f"a\n{MARK}\tb",
    "NUL": f"\x00{MARK}",
}
MARKUP = {
    "closing tag": "[/",
    "closing tag of a path": "[/notes/a.md:L1-L9]",
    "open tag": "[b",
    "link tag": f"[link=http://{MARK}.example]x[/link]",
    "click": "[@click=app.quit]x[/]",
    "actions": "app.quit screen.dismiss('x') [bold]y[/bold]",
    "shell": f"$(touch {MARK}) `touch {MARK}` ; touch {MARK}",
    "formats": "%s %(x)s {0} {x!r} $1 \\x1b[2J \\n",
}
ODD_WIDTHS = {
    "variation selectors": "a\ufe0f\ufe0e☺\ufe0f",
    "joiners": "a\u2060\u200b\u200d\u200c\ufeff\u00ad",
    "wide": "日本語ｗｉｄｅ👩‍👩‍👧‍👦🇩🇪",
    "combining": "e" + "\u0301" * 40,
    "right to left": "שלום\u200f مرحبا\u061c",
    "bytes that are not UTF-8": "\udcff\udc9b",
    "half a pair": "\ud800",
    "tags": "\U000e0001\U000e0041\ufff9\u115f",
    "long": "long" * 3000,
}
PAYLOADS = {**STEERING, **MARKUP, **ODD_WIDTHS}

STEERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Every character that a terminal obeys or that turns the direction of a line, and what is no character."""

TEXTUAL = re.compile(
    r"\x1b\[(?:[0-9;]*m|\d+;\d+H"  # colours, and the place of what follows
    r"|\?(?:25|7|1000|1002|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]"  # modes of a full screen
    r"|\?\d+\$p|>\d+u|<u)"  # what it asks and sets of modes and keys
    r"|\x1b\]22;[a-z-]*\x07"  # the shape of the pointer
)
"""What the console itself may say to the terminal; nothing of it is in a payload but colours, which have no way in."""

BAR = re.compile(r"\r?\x1b\[\?25[hl]")
"""What a progress bar says: back to the first column, and hide or show the cursor."""


def encoded(payload: str) -> bytes:
    """The payload as the system takes text: halves of a pair are bytes that are not UTF-8, or cannot be told."""
    return "".join(each for each in payload if not "\ud800" <= each < "\udc80").encode(
        "utf-8", "surrogateescape"
    )


def name(payload: str, room: int = 200) -> str:
    """The payload as far as a file can be called so."""
    return os.fsdecode(encoded(payload.replace("/", "|").replace("\0", ""))[:room])


NAMES = [name(payload) for payload in PAYLOADS.values()]


def write_notes(root: Path) -> Path:
    """Each payload as the name of a folder and of a note, as its heading and text, and as a note that is none."""
    for number, payload in enumerate(PAYLOADS.values()):
        folder = root / f"{number} {NAMES[number]}"
        folder.mkdir(parents=True)
        (folder / f"{NAMES[number]}.md").write_bytes(encoded(f"# {payload}\n\nowl {payload} end\n"))
        (folder / f"bad {NAMES[number]}.md").write_bytes(b"\xff\xfeo\x00" + encoded(payload))
    return root


def obeyed(output: bytes, *, allowed: re.Pattern[str] = BAR) -> list[str]:
    """What of a program's output is more than text on lines, each with what stands around it.

    An 8-bit control that is not within UTF-8 is told too.
    """
    text = allowed.sub("", output.decode("utf-8", "surrogateescape").replace("\r\n", "\n"))
    return [
        ascii(text[max(found.start() - 30, 0) : found.end() + 30])
        for found in STEERS.finditer(text)
        if found[0] not in "\n\t"
    ]
