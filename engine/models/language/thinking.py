"""What a model says aloud: some think in the text itself first, between `<think>` and `</think>`."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


class Spoken:
    """Takes text piece by piece and gives what is said aloud; a tag may be torn anywhere.

    Thinking stands at the beginning, if at all: later on the tags are text like any other.
    """

    def __init__(self) -> None:
        self.text = ""
        """What was said aloud so far."""
        self.heard = 0
        """Characters that came in, with what was only thought."""
        self._held = ""
        self._state = "start"

    def add(self, piece: str) -> str:
        """What the piece adds to what is said aloud."""
        self.heard += len(piece)
        if self._state == "aloud":
            return self._say(piece)
        self._held += piece
        if self._state == "start":
            begun = self._held.lstrip()
            if len(begun) < len(OPEN) and OPEN.startswith(begun):
                return ""
            if not begun.startswith(OPEN):
                return self._aloud(self._held)
            self._state, self._held = "thinking", begun[len(OPEN) :]
        _, closed, rest = self._held.partition(CLOSE)
        if closed:
            return self._aloud(rest.lstrip())
        self._held = self._held[-len(CLOSE) :]  # no more is needed to see the tag
        return ""

    def rest(self) -> str:
        """What was held back when no more comes. A thought that was never ended is none of it."""
        return self._aloud(self._held) if self._state == "start" else ""

    def _aloud(self, text: str) -> str:
        self._state, self._held = "aloud", ""
        return self._say(text)

    def _say(self, text: str) -> str:
        self.text += text
        return text
