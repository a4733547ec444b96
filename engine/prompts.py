"""The prompts: texts in `prompts/`, one file a wording, each cut into parts that are filled in.

A part begins with a line `--- name ---`. What is filled in is never read again for places to fill, so nothing
that stands in a note or a question can be taken for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from engine.errors import PromptError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUFFIX = ".txt"

_PART = re.compile(r"^--- (\w+) ---$", re.MULTILINE)
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The parts of one file, by name."""

    version: str
    parts: Mapping[str, str]

    def part(self, name: str, **values: str) -> str:
        """A part with each `{place}` that there is a value for filled in; other braces are text."""
        return _PLACE.sub(lambda place: values.get(place[1], place[0]), self.parts[name])


def versions(kind: str) -> list[str]:
    """The prompts there are of a kind such as `ask`, by name."""
    return sorted(each for each in _names() if each.startswith(f"{kind}_"))


def load(version: str, kind: str, needs: Mapping[str, Sequence[str]]) -> Prompt:
    """The prompt of this version. `needs` are the parts it must have, each with the places to fill in it.

    Raises:
        PromptError: there is none of that name and kind, or it lacks a part or a place.
    """
    known = versions(kind)
    if version not in known:  # so no name leads out of the folder
        raise PromptError(f"There is no prompt {version!r}.", remedy=f"There are: {', '.join(known)}.")
    prompt = Prompt(version, _parts(_read(version)))
    for part, places in needs.items():
        if not prompt.parts.get(part):
            raise PromptError(f"The prompt {version} has no part {part!r}.", remedy=_INSTALL)
        for place in places:
            if f"{{{place}}}" not in prompt.parts[part]:
                raise PromptError(
                    f"The part {part!r} of the prompt {version} has no place {{{place}}}.", remedy=_INSTALL
                )
    return prompt


_INSTALL = "Set PROMPT_VERSION to another one, or install Noctuary again."


@cache
def _names() -> frozenset[str]:
    files = (file.name for file in resources.files("prompts").iterdir())
    return frozenset(name.removesuffix(SUFFIX) for name in files if name.endswith(SUFFIX))


def _read(version: str) -> str:
    return (resources.files("prompts") / f"{version}{SUFFIX}").read_text(encoding="utf-8")


def _parts(text: str) -> dict[str, str]:
    _, *found = _PART.split(text)
    return {name: part.strip() for name, part in zip(found[::2], found[1::2], strict=True)}
