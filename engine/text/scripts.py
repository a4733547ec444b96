"""In which script a text is written: Latin, Cyrillic, Han and so on, told by the names of its letters."""

from __future__ import annotations

import unicodedata
from collections import Counter

MOST_LETTERS = 400
"""Letters judged: the script of a passage shows in its first lines."""


def script(text: str) -> str:
    """The script most of the letters are in, as their Unicode names begin; empty without letters.

    Japanese counts as Han: its own letters stand between Han ones.
    """
    letters = [each for each in text[: 4 * MOST_LETTERS] if each.isalpha()][:MOST_LETTERS]
    found = Counter(unicodedata.name(each, "").partition(" ")[0].partition("-")[0] for each in letters)
    found["CJK"] += found.pop("HIRAGANA", 0) + found.pop("KATAKANA", 0)
    best = max(found, key=lambda name: found[name])
    return best if found[best] else ""


def differ(one: str, other: str) -> bool:
    """Whether two texts are in different scripts; one without letters is in none."""
    first, second = script(one), script(other)
    return bool(first and second and first != second)
