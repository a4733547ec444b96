"""Keyword search's view of text: the terms of a passage, what a query asks for, and where it is met.

`terms` and `parse_query` fold and split words in the same way, so a word finds itself however it is
written. An identifier is asked for whole and in parts: its whole form is rare, so texts that hold it as
written come first, and those that hold its parts follow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.text.phrases import Phrase, make_phrase
from engine.text.words import (
    MAX_TERM,
    analyse,
    fold,
    fold_identifier,
    is_pictograph,
    is_unsegmented,
    locate,
    plain_term,
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


SHORTEST_PREFIX = 2
"""Letters of an unfinished word that say anything: one begins a twentieth of all words."""


@dataclass(frozen=True, slots=True)
class Query:
    """What a query asks for.

    `terms` are distinct, in the query's order, those of its phrases included. `prefix` is the last word
    as far as it is typed, folded, when nothing follows it yet and it is long enough to say anything;
    `terms` has it as if it were finished. `beside` tells whether words stand beside the phrases.
    """

    text: str
    terms: tuple[str, ...] = ()
    phrases: tuple[Phrase, ...] = ()
    prefix: str | None = None
    beside: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for by keyword."""
        return not self.terms


def parse_query(query: str) -> Query:
    """Reads a query as typed. Double quotes make phrases; one that is not closed is left out of account."""
    text = query[:MAX_QUERY].translate(_QUOTES)
    found = locate(text)
    wanted = dict.fromkeys(term for _, _, word in found for _, _, term in analyse(word))
    phrases = (make_phrase(match[1] or match[2] or "") for match in _QUOTED.finditer(text))
    return Query(
        text=query,
        terms=tuple(wanted)[:MAX_QUERY_TERMS],
        phrases=tuple(phrase for phrase in phrases if phrase is not None),
        beside=bool(locate(_QUOTED.sub(" ", text))),
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
    if is_unsegmented(word):
        folded = fold(word)
        return folded if len(folded) == 1 else None
    term = plain_term(fold_identifier(word).replace("'", ""))
    return term if term and len(term) >= SHORTEST_PREFIX else None
