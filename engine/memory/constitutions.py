"""Constitutions: named files in the configuration folder: how an agent shall be, and what it declines.

`constitutions/NAME.toml` has `system`, the text that heads every prepared turn, and may have `decline`, a
list of phrases: a turn in which one stands is not prepared, and `reason` is told. `NAME.md` and `NAME.txt`
are the text alone.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import TurnError

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "constitutions"
DEFAULT = "default"
"""The one that holds where a turn names none, if there is a file of that name."""

LONGEST = 64 * 1024
"""Bytes of a file: it goes to a model with every turn."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SUFFIXES = (".toml", ".md", ".txt")
_KEYS = frozenset({"system", "decline", "reason"})


@dataclass(frozen=True, slots=True)
class Constitution:
    """What heads a turn, and which turns are declined with which reason."""

    name: str = ""
    system: str = ""
    decline: tuple[str, ...] = ()
    reason: str = ""

    def refusal(self, text: str) -> str | None:
        """Why a turn is declined, or None."""
        folded = _folded(text)
        for phrase in self.decline:
            if _folded(phrase) in folded:
                return self.reason or f"The constitution {self.name} declines turns with {phrase!r} in them."
        return None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def named(config: Path, name: str | None) -> Constitution:
    """The constitution of a name (None: the default one, which need not exist). It is read anew each time: a
    person who edits it sees the change at once.

    Raises:
        TurnError: there is none of that name, or its file cannot be read or says something unknown. Its path
            stands in the remedy alone, which is not for callers from elsewhere.
    """
    folder = config / FOLDER
    wanted = name or DEFAULT
    if _NAME.fullmatch(wanted):
        for suffix in _SUFFIXES:
            path = folder / f"{wanted}{suffix}"
            if path.is_file():
                return _read(path, wanted)
    if name is None:
        return Constitution()
    there = sorted({path.stem for path in folder.glob("*") if path.suffix in _SUFFIXES})
    raise TurnError(
        f"There is no constitution {name[:80]!r}.",
        remedy=f"There are: {', '.join(there)}." if there else f"Write one as {folder / 'NAME.toml'}.",
    )


def _read(path: Path, name: str) -> Constitution:
    try:
        if path.stat().st_size > LONGEST:
            raise TurnError(
                f"The constitution {name!r} is longer than {LONGEST:,} bytes.", remedy=f"Shorten {path}."
            )
        text = path.read_text(encoding="utf-8")
        if path.suffix != ".toml":
            return Constitution(name, text.strip())
        return _checked(tomllib.loads(text), path, name)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TurnError(
            f"The constitution {name!r} cannot be read.", remedy=f"See {path}: {error}."
        ) from error


def _checked(found: dict[str, object], path: Path, name: str) -> Constitution:
    unknown = sorted(set(found) - _KEYS)
    if unknown:
        raise TurnError(
            f"The constitution {name!r} has the key {unknown[0]!r}, which means nothing.",
            remedy=f"In {path} there may be: {', '.join(sorted(_KEYS))}.",
        )
    system, decline, reason = found.get("system", ""), found.get("decline", []), found.get("reason", "")
    there = f"Edit {path}."
    phrases = decline if isinstance(decline, list) else None
    if phrases is None or not all(isinstance(each, str) and each.strip() for each in phrases):
        raise TurnError(f"`decline` in the constitution {name!r} has to be a list of phrases.", remedy=there)
    if not isinstance(system, str) or not isinstance(reason, str):
        raise TurnError(f"`system` and `reason` in the constitution {name!r} have to be texts.", remedy=there)
    return Constitution(name, system.strip(), tuple(phrases), reason.strip())
