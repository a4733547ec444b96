"""Quoted phrases: whether words stand next to each other in a text as it is, not only in its index."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from engine.text.characters import SOUTH_EAST_ASIAN_MARKS, SUPERSCRIPTS
from engine.text.words import (
    ARTICLE,
    FOLDED,
    LETTERS,
    SHORTEST_AT_APOSTROPHE,
    find,
    fold,
    fold_identifier,
    is_pictograph,
    is_unsegmented,
    parts,
    smallest_terms,
)

_ATTACHED = re.compile(rf"[\u00a8\u00af\u00b4\u00b8\u02d8-\u02dd\u2120\u2122{SUPERSCRIPTS}]")
"""What compatibility folding would turn into letters, digits or marks of the word beside it."""

_NO_MARK = f"(?![{SOUTH_EAST_ASIAN_MARKS}])"
"""A run of Thai does not end between a letter and its marks."""

_GAP = r"(?:(?!\r?\n[ \t]{0,8}\r?\n)[\W_]){%d,24}"
"""What may stand between two words of a phrase: white space, one line break, punctuation, Markdown's signs,
but not a blank line. The bound and the plain alternatives keep matching linear."""


_ARABIC_ARTICLE = re.compile(f"(?:{ARTICLE})?(?=[{LETTERS}]{{3}})")
"""An Arabic name is quoted with the article, and stands without it."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must stand next to each other.

    `words` are the words folded; `terms` are index terms that every text with the phrase has, to narrow
    down the candidates. `found_in` decides. `borders` says of each word whether its first and its last
    part are short; it is None for a word that has no borders, such as a run of Chinese.
    """

    words: tuple[str, ...]
    terms: tuple[str, ...]
    pattern: re.Pattern[str]
    borders: tuple[tuple[bool, bool] | None, ...]

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
        """Whether each word of a match is a word there, and not a part of a longer one."""
        for number, short in enumerate(self.borders, 1):
            if short is None:
                continue
            start, end = match.span(number)
            before, after = folded[max(0, start - 2) : start][::-1], folded[end : end + 2]
            if _belongs_to(before, short=short[0]) or (
                folded[end - 1] not in "+#" and _belongs_to(after, short=short[1])
            ):
                return False
        return True


def _belongs_to(beside: str, *, short: bool) -> bool:
    """Whether the characters next to a word, nearest first, make it part of a longer one.

    A short word is no part of an elision: the `l` of `l'homme` is no word, in the index as here.
    """
    if not beside:
        return False
    elided = short and beside[0] in "'\u2019" and _is_letter(beside[1:])
    return elided or _is_letter(beside[0])


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _is_letter(character: str) -> bool:
    if character.isalnum():
        return not is_unsegmented(character)
    return bool(character) and not character.isascii() and _is_mark(character)


def _fold_text(text: str) -> str:
    """A whole text folded as its words are, for the patterns of phrases; offsets are lost."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _ATTACHED.sub(" ", text)).casefold()
    return unicodedata.normalize("NFKC", folded).translate(FOLDED).replace("i\u0307", "i")


def make_phrase(text: str) -> Phrase | None:
    """The phrase of a quoted text; None when it holds no word."""
    # Signs without a letter to stand on belong to whatever is before them: they are no word to look for.
    words = [word for word in find(text) if not all(map(_is_mark, fold(word)))]
    if not words:
        return None
    pattern = _word_pattern(words[0])
    for before, word in pairwise(words):
        pattern += _GAP % int(_has_borders(before) and _has_borders(word)) + _word_pattern(word)
    return Phrase(
        words=tuple(fold_identifier(word) for word in words),
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


def _borders(word: str) -> tuple[bool, bool] | None:
    if not _has_borders(word):
        return None
    found = parts(word)
    return len(fold(found[0])) < SHORTEST_AT_APOSTROPHE, len(fold(found[-1])) < SHORTEST_AT_APOSTROPHE


def _word_pattern(word: str) -> str:
    """A word as a group over folded text: `real-time` is met by real time, `my_var` also escaped."""
    folded = fold_identifier(word)
    if is_unsegmented(word):
        return (
            "("
            + r"(?:\r?\n)?".join(re.escape(each) for each in folded if not each.isspace())
            + _NO_MARK
            + ")"
        )
    if is_pictograph(word):
        return f"({re.escape(folded)})"
    article = _ARABIC_ARTICLE.match(folded)
    inside = (
        _ALTERNATIVES.get(each) or (each if each.isalnum() else r"\\?" + re.escape(each))
        for each in re.sub("_+", "_", folded[article.end() :] if article else folded)
    )
    return "(" + (f"(?:{ARTICLE})?" if article else "") + "".join(inside) + ")"
