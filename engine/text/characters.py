"""Character classes for regular expressions that the standard `re` lacks, as the inside of `[...]`."""

from __future__ import annotations

import unicodedata
from functools import cache

HAN = (
    r"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    r"\U00020000-\U0003ffff"
)
HANGUL = r"\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"
KANA = (
    r"\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    r"\uff66-\uff9f\U0001b000-\U0001b16f"
)
SOUTH_EAST_ASIAN = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf\u1000-\u103f\u1780-\u17d3"
)
"""Thai, Lao, Myanmar and Khmer without their digits: they are written without spaces, with marks."""

SOUTH_EAST_ASIAN_MARKS = (
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3"
)
"""Vowel signs and tone marks that are one with the letter before them."""

UNSEGMENTED = HAN + HANGUL + KANA + SOUTH_EAST_ASIAN
"""Scripts that are indexed by pairs of characters, because their words cannot be found at spaces.

Hangul has spaces, but particles cling to its words: pairs find the noun in `noun + particle`.
"""

SUPERSCRIPTS = r"\u00b2\u00b3\u00b9\u2070-\u207f"
"""Footnote marks and powers: `word¹` is the word and a number, not a word ending in 1."""

INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
"""Soft hyphen, zero-width spaces and joiners: within a word they are not part of its term."""

PICTOGRAPHS = r"\u2600-\u27bf\u2b50\u2b55\U0001f300-\U0001faff"
"""Emoji: each is a word of its own, because notes are tagged with them."""

_WITH_MARKS = (
    *((0x300, 0x370), (0x483, 0x48A), (0x591, 0x1E00), (0x20D0, 0x20F1), (0x2CEF, 0x2E00), (0x302A, 0x309B)),
    *((0xA66F, 0xAC00), (0xFB1E, 0xFB1F), (0xFE20, 0xFE30), (0x101FD, 0x101FE), (0x102E0, 0x1037B)),
    *((0x10A01, 0x12000), (0x13430, 0x13460), (0x16AF0, 0x17000), (0x1BC9D, 0x1BC9F), (0x1CF00, 0x1E94B)),
)
"""Where Unicode has marks outside the variation selectors; looking only here takes milliseconds."""


@cache
def marks() -> str:
    """Marks of every script: vowel signs and accents belong to words, but no letter class has them."""
    points = [
        point
        for start, end in _WITH_MARKS
        for point in range(start, end)
        if unicodedata.category(chr(point)) in {"Mn", "Mc", "Me"}
    ]
    return _ranges(points) + r"\ufe00-\ufe0f\U000e0100-\U000e01ef"


def _ranges(points: list[int]) -> str:
    """Sorted code points as the inside of a character class."""
    parts: list[str] = []
    first = last = points[0]
    for point in [*points[1:], -1]:
        if point == last + 1:
            last = point
            continue
        parts.append(f"{chr(first)}-{chr(last)}")
        first = last = point
    return "".join(parts)
