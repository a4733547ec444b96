"""What the doctor says of one part, and what it can do about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from engine.errors import NoctuaryError
from engine.settings import mask

Mend = Callable[[], Awaitable[str]]
"""Puts one thing right, and tells in a sentence what it did."""


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One part: its state, a sentence on what was found, and what to do if anything.

    `fixed` tells what was done about it, after which it is ok; `left` why `--fix` did nothing.
    """

    name: str
    state: State
    sentence: str
    remedy: str = ""
    fixed: str = ""
    left: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A check made before the engine is opened.

    `blocks` is whether opening would fail for it, `opening` what opening does about it, `mend` what
    `--fix` does.
    """

    check: Check
    blocks: bool = False
    opening: str = ""
    mend: Mend | None = None

    async def mended(self) -> Finding:
        """The finding after its mend, if it has one."""
        if self.mend is None:
            return self
        try:
            done = await self.mend()
        except NoctuaryError as error:
            return replace(self, check=replace(self.check, left=mask(error.message)), mend=None)
        except OSError as error:
            return replace(self, check=replace(self.check, left=f"The system refused: {error}."), mend=None)
        return Finding(fixed(self.check, done))

    def after_opening(self, *, opened: bool) -> Check:
        """The check once the engine was opened, or could not be."""
        if not self.opening:
            return self.check
        if opened:
            return fixed(self.check, self.opening)
        return replace(self.check, left=self.check.left or "The database could not be opened.")


def fixed(check: Check, done: str) -> Check:
    """The check of a part that was put right: what was found stays told."""
    return replace(check, state=State.OK, remedy="", left="", fixed=done)


def failed(name: str, error: NoctuaryError, *, left: str = "") -> Check:
    """A part that fails with an error of ours."""
    return Check(name, State.FAIL, mask(error.message), error.remedy, left=left)


def skipped(name: str, needed: str) -> Check:
    """A part that could not be tried for want of another."""
    return Check(name, State.WARN, f"Not tried: it needs {needed}.")
