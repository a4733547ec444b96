"""The path of a note to be written, judged by its letters alone: what it may be called, and why not.

Whoever proposes it is not trusted. Each refusal is one sentence that tells what to do instead.
"""

from __future__ import annotations

import re
import unicodedata

from engine.errors import WriteError
from engine.notes import disk
from engine.text.safe import visible

LONGEST_NAME = 255
"""Bytes of one file's or folder's name on the file systems that there are."""

DEEPEST = 16
"""Names in a path; a model that goes on and on makes no tower of folders."""

SHOWN = 200
"""Characters of a refused path that are told."""

_DRIVE = re.compile(r"[A-Za-z]:")
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"}


class Refused(WriteError):
    """What was proposed cannot be done, and something else can: told to whoever proposed it."""


def parts(path: str) -> tuple[str, ...]:
    """The names in a path within the folder, in Unicode's composed form.

    Raises:
        Refused: it leads out of the folder, is hidden, is no note's, or no name that every system can have.
    """
    path = unicodedata.normalize("NFC", path)
    names = tuple(path.split("/"))
    problem = _problem(path, names)
    if problem:
        raise Refused(f"The path {shown(path)} {problem}.", remedy="Give one such as topics/owls.md.")
    return names


def shown(path: str) -> str:
    """A path that others chose, as it is told."""
    return visible(path[:SHOWN] + ("…" if len(path) > SHOWN else ""), keep_newlines=False, keep_tabs=False)


def folded(name: str) -> str:
    """What two names have in common that differ only in case or in Unicode form."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _problem(path: str, names: tuple[str, ...]) -> str:
    """What is wrong with a path; empty when nothing is."""
    if not path.strip():
        return "is empty"
    if any(unicodedata.category(letter) in _UNSEEN for letter in path):
        return "holds a character that cannot be seen"
    if "\\" in path or _DRIVE.match(path):
        return "is not written with / between its folders"
    if path.startswith(("/", "~")):
        return "is not one within the folder of notes: it must not begin with / or ~"
    if ".." in names:
        return "leads out of its folder"
    return next((problem for name in names if (problem := _name_problem(name))), _whole_problem(path, names))


def _name_problem(name: str) -> str:
    if not name.strip():
        return "has a name in it that is empty"
    if name.startswith("."):
        return "is hidden: no name in it may begin with a dot"
    if name != name.strip() or name.endswith("."):
        return "has a name in it that begins or ends with a blank, or ends with a dot"
    return "has a name in it that is too long" if len(name.encode()) > LONGEST_NAME else ""


def _whole_problem(path: str, names: tuple[str, ...]) -> str:
    if not disk.is_note(names[-1]):
        return "is not one of a Markdown note: it must end with .md"
    return "is too long" if len(names) > DEEPEST or not disk.nameable(path) else ""
