"""Keyword search's view of text: the terms of a passage, what a query asks for, and where it is met.

`terms` and `parse_query` fold and split words in the same way, so a word finds itself however it is
written. An identifier is asked for whole and in parts: its whole form is rare, so texts that hold it as
written come first, and those that hold its parts follow.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from engine.text.characters import MARKS, SUPERSCRIPTS, UNSEGMENTED
from engine.text.words import (
    DROPPED,
    MAX_TERM,
    SHORTEST_AT_APOSTROPHE,
    UNIFIED,
    analyse,
    find,
    fold,
    is_pictograph,
    is_unsegmented,
    locate,
    smallest_terms,
    terms,
    terms_of_word,
)

__all__ = [
    "MAX_QUERY",
    "MAX_QUERY_TERMS",
    "MAX_TERM",
    "Phrase",
    "Query",
    "match_spans",
    "parse_query",
    "terms",
]

MAX_QUERY = 2000
"""Characters of a query that are read: more is a pasted document, and every term costs the database."""

MAX_QUERY_TERMS = 128
"""Distinct terms of a query that are asked for."""

_QUOTES = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u201f\uff02", '"'))
_QUOTED = re.compile(r'"([^"]*)"|\u00ab([^\u00bb]*)\u00bb')

_ATTACHED = re.compile(rf"[\u00a8\u00af\u00b4\u00b8\u02d8-\u02dd\u2120\u2122{SUPERSCRIPTS}]")
"""What compatibility folding would turn into letters, digits or marks of the word beside it."""

_GAP = r"(?:(?!\r?\n[ \t]{0,8}\r?\n)[\W_]){%d,24}"
"""What may stand between two words of a phrase: white space, one line break, punctuation, Markdown's signs,
but not a blank line. The bound and the plain alternatives keep matching linear."""

_LETTER = rf"[^\W_{UNSEGMENTED}]"
_STARTS = rf"(?<!{_LETTER})(?<![{MARKS}])"
_ENDS = rf"(?!{_LETTER}|[{MARKS}])"
_NO_ELISION_BEFORE = rf"(?<!{_LETTER}['\u2019])"
_NO_ELISION_AFTER = rf"(?!['\u2019]{_LETTER})"
"""The `l` of `l'homme` is no word of its own, in the index as here."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must stand next to each other.

    `words` are the words folded; `terms` are index terms that every text with the phrase has, to narrow
    down the candidates. `found_in` decides.
    """

    words: tuple[str, ...]
    terms: tuple[str, ...]
    pattern: re.Pattern[str]

    def found_in(self, text: str) -> bool:
        """Whether the phrase stands in a text: whatever its case and width, across a line break too."""
        return self.pattern.search(_fold_text(text)) is not None


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for.

    `terms` are distinct, in the query's order, those of its phrases included. `prefix` is the last word
    as far as it is typed, folded, when nothing follows it yet; `terms` has it as if it were finished.
    """

    text: str
    terms: tuple[str, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    prefix: str | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for by keyword."""
        return not self.terms


def parse_query(query: str) -> Query:
    """Reads a query as typed. Double quotes make phrases; one that is not closed is left out of account."""
    text = query[:MAX_QUERY].translate(_QUOTES)
    found = locate(text)
    wanted = dict.fromkeys(term for _, _, word in found for _, _, term in analyse(word))
    phrases = (_phrase(match[1] or match[2] or "") for match in _QUOTED.finditer(text))
    return Query(
        text=query,
        terms=tuple(wanted)[:MAX_QUERY_TERMS],
        phrases=tuple(phrase for phrase in phrases if phrase is not None),
        prefix=_prefix(found[-1][2]) if found and found[-1][1] == len(text) else None,
    )


def match_spans(text: str, query: Query, *, prefix: bool = False) -> tuple[tuple[int, int], ...]:
    """Where the words of a query stand in a text: (start, end) offsets, sorted, none overlapping.

    An identifier is marked whole where the whole is asked for, else only its part that is. With `prefix`
    words that begin with the query's unfinished word count too.
    """
    wanted = frozenset(query.terms)
    start_of_word = query.prefix if prefix else None
    spans: list[tuple[int, int]] = []
    for start, _, word in locate(text):
        known = terms_of_word(word)
        begins = start_of_word is not None and any(term.startswith(start_of_word) for term in known)
        if not begins and wanted.isdisjoint(known):
            continue
        spans += [
            (start + low, start + high)
            for low, high, term in analyse(word, singles=True)
            if term in wanted or (start_of_word is not None and term.startswith(start_of_word))
        ]
    return _merged(spans)


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def _prefix(word: str) -> str | None:
    """The unfinished word. Pairs of characters find the rest of a longer run by themselves."""
    if is_pictograph(word):
        return None
    folded = fold(word.translate(UNIFIED)).replace("'", "")
    if is_unsegmented(word) and len(folded) > 1:
        return None
    return folded[:MAX_TERM]


def _fold_text(text: str) -> str:
    """A whole text folded as its words are, for the patterns of phrases; offsets are lost."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", _ATTACHED.sub(" ", text)).casefold()
    return unicodedata.normalize("NFKC", folded).translate(DROPPED).replace("i\u0307", "i")


def _phrase(text: str) -> Phrase | None:
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
    )


def _has_borders(word: str) -> bool:
    return not (is_unsegmented(word) or is_pictograph(word))


_ALTERNATIVES = {
    "'": "['\u2019]",
    "-": r"[\W_]{1,3}",
    "_": r"(?:\\?_)+",
}


def _word_pattern(word: str) -> str:
    """A word as a pattern over folded text: `real-time` is met by real time, `my_var` also escaped."""
    folded = fold(word.translate(UNIFIED))
    if is_unsegmented(word):
        return r"(?:\r?\n)?".join(re.escape(each) for each in folded if not each.isspace())
    if is_pictograph(word):
        return re.escape(folded)
    inside = "".join(
        _ALTERNATIVES.get(each) or (each if each.isalnum() else r"\\?" + re.escape(each))
        for each in re.sub("_+", "_", folded)
    )
    short = len(folded) < SHORTEST_AT_APOSTROPHE
    before = _STARTS + (_NO_ELISION_BEFORE if short else "") if folded[0].isalnum() else ""
    after = _ENDS + (_NO_ELISION_AFTER if short else "") if folded[-1] not in "+#" else ""
    return before + inside + after
