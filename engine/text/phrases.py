"""Quoted phrases: whether words stand next to each other in a text as it is, not only in its index."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from engine.text.characters import MARKS, SUPERSCRIPTS, UNSEGMENTED
from engine.text.words import (
    DROPPED,
    SHORTEST_AT_APOSTROPHE,
    UNIFIED,
    find,
    fold,
    is_pictograph,
    is_unsegmented,
    smallest_terms,
)

_ATTACHED = re.compile(rf"[\u00a8\u00af\u00b4\u00b8\u02d8-\u02dd\u2120\u2122{SUPERSCRIPTS}]")
"""What compatibility folding would turn into letters, digits or marks of the word beside it."""

_GAP = r"(?:(?!\r?\n[ \t]{0,8}\r?\n)[\W_]){%d,24}"
"""What may stand between two words of a phrase: white space, one line break, punctuation, Markdown's signs,
but not a blank line. The bound and the plain alternatives keep matching linear."""

_LETTER = rf"[^\W_{UNSEGMENTED}]"
_APART = re.compile(rf"(?<!{_LETTER})(?<![{MARKS}])"), re.compile(rf"(?!{_LETTER}|[{MARKS}])")
_SHORT_APART = (
    re.compile(rf"(?<!{_LETTER})(?<![{MARKS}])(?<!{_LETTER}['\u2019])"),
    re.compile(rf"(?!{_LETTER}|[{MARKS}])(?!['\u2019]{_LETTER})"),
)
"""What must hold before and after a word. Compiled once, not in each phrase, for they are large.

A short word is no part of an elision: the `l` of `l'homme` is no word, in the index as here.
"""
_ANYWHERE = re.compile("")

_Borders = tuple["re.Pattern[str]", "re.Pattern[str]"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must stand next to each other.

    `words` are the words folded; `terms` are index terms that every text with the phrase has, to narrow
    down the candidates. `found_in` decides.
    """

    words: tuple[str, ...]
    terms: tuple[str, ...]
    pattern: re.Pattern[str]
    borders: tuple[_Borders, ...]

    def found_in(self, text: str) -> bool:
        """Whether the phrase stands in a text: whatever its case and width, across a line break too."""
        folded = _fold_text(text)
        match = self.pattern.search(folded)
        while match is not None:
            if self._stands_apart(folded, match):
                return True
            match = self.pattern.search(folded, match.start() + 1)
        return False

    def _stands_apart(self, folded: str, match: re.Match[str]) -> bool:
        return all(
            before.match(folded, match.start(number)) and after.match(folded, match.end(number))
            for number, (before, after) in enumerate(self.borders, 1)
        )


def _fold_text(text: str) -> str:
    """A whole text folded as its words are, for the patterns of phrases; offsets are lost."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _ATTACHED.sub(" ", text)).casefold()
    return unicodedata.normalize("NFKC", folded).translate(DROPPED).replace("i\u0307", "i")


def make_phrase(text: str) -> Phrase | None:
    """The phrase of a quoted text; None when it holds no word."""
    words = find(text)
    if not words:
        return None
    pattern = _word_pattern(words[0])
    for before, word in pairwise(words):
        pattern += _GAP % int(_has_borders(before) and _has_borders(word)) + _word_pattern(word)
    return Phrase(
        words=tuple(fold(word.translate(UNIFIED)) for word in words),
        terms=tuple(dict.fromkeys(term for word in words for term in smallest_terms(word))),
        pattern=re.compile(pattern),
        borders=tuple(map(_borders, words)),
    )


def _has_borders(word: str) -> bool:
    return not (is_unsegmented(word) or is_pictograph(word))


_ALTERNATIVES = {
    "'": "['\u2019]",
    "-": r"[\W_]{1,3}",
    "_": r"(?:\\?_)+",
}


def _borders(word: str) -> _Borders:
    if not _has_borders(word):
        return _ANYWHERE, _ANYWHERE
    folded = fold(word.translate(UNIFIED))
    before, after = _SHORT_APART if len(folded) < SHORTEST_AT_APOSTROPHE else _APART
    return before if folded[0].isalnum() else _ANYWHERE, after if folded[-1] not in "+#" else _ANYWHERE


def _word_pattern(word: str) -> str:
    """A word as a group over folded text: `real-time` is met by real time, `my_var` also escaped."""
    folded = fold(word.translate(UNIFIED))
    if is_unsegmented(word):
        return "(" + r"(?:\r?\n)?".join(re.escape(each) for each in folded if not each.isspace()) + ")"
    if is_pictograph(word):
        return f"({re.escape(folded)})"
    inside = (
        _ALTERNATIVES.get(each) or (each if each.isalnum() else r"\\?" + re.escape(each))
        for each in re.sub("_+", "_", folded)
    )
    return "(" + "".join(inside) + ")"
