"""Finds the words of a text and turns each into the terms it is indexed by.

Words are found in the text as it stands, so that their offsets are the text's own; only then is each
folded (compatibility forms, case, invisible characters). Words repeat, so their terms are remembered.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import chain, pairwise
from threading import Lock
from typing import TYPE_CHECKING

from engine.text.characters import (
    HAN,
    HANGUL,
    INVISIBLE,
    PICTOGRAPHS,
    SOUTH_EAST_ASIAN_MARKS,
    SUPERSCRIPTS,
    UNSEGMENTED,
    marks,
)

if TYPE_CHECKING:
    import Stemmer

MAX_TERM = 64
"""Characters of a term that are kept: a line of base64 must not become a key the database refuses."""

SHORTEST_AT_APOSTROPHE = 3
"""`l'homme` is found by homme; the t of don't is no word."""

_REMEMBERED = 1 << 15
"""Words whose terms are remembered, twice over: about 20 MB."""

_MAX_HUMPS = 8
"""A word with more changes of case than this is an encoded blob, not a name in camel case."""


_BEFORE_DOT = r"\"'`(\[<,;:*/|"
"""What, besides white space, a name like `.NET` may follow: its dot ends no sentence there."""


@cache
def _word() -> re.Pattern[str]:
    """A word in any script. Compiled when first needed: its classes are large, and start-up counts."""
    letter = rf"[^\W_{UNSEGMENTED}{SUPERSCRIPTS}]"
    plain = rf"{letter}+(?:[{marks()}{INVISIBLE}]+{letter}*)*"
    joiner = r"\\?(?:_+|[-.'\u2019\u2010\u2011\uff0d\uff0e\uff3f])"
    before = rf"\s{_BEFORE_DOT}\u00ab\u00bb\u2018-\u201f\uff02"
    plus, sharp = r"\\?[+\uff0b]", r"\\?[#\uff03]"
    return re.compile(
        rf"(?:(?<![^{before}])\.(?=[^\W\d_]))?(?=[^\W_])(?:(?:{joiner})?{plain})+"
        rf"(?:{plus}{plus}(?![\w+])|{sharp}(?![\w#]))?"
        rf"|[{UNSEGMENTED}]+(?:\r?\n[{UNSEGMENTED}]+)*"
        rf"|[{PICTOGRAPHS}]"
    )


_ASCII_WORD = re.compile(
    r"[A-Za-z0-9]+(?:\\?(?:_+|[-.'])[A-Za-z0-9]+)*(?:\\?\+\\?\+(?![\w+])|\\?#(?![\w#]))?"
    rf"|(?<![^\s\x1c-\x1f{_BEFORE_DOT}])\.[A-Za-z][A-Za-z0-9]*(?:\\?(?:_+|[-.'])[A-Za-z0-9]+)*",
    re.ASCII,
)
"""The same for a text of ASCII only, which most are: several times as fast."""

_PARTS = re.compile(r"(?:[^-\\_.+#\u2010\u2011\uff0b\uff03\uff0d\uff0e\uff3f]|\\(?=['\u2019]))+")
_BETWEEN_APOSTROPHES = re.compile(r"[^'\u2019\\]+")
"""What stands between the joiners of a word that is already found."""

_VERSION = re.compile(r"[vV](?=[0-9])")
_HUMP = re.compile(r"[0-9]*[A-Z]+(?![a-z])[0-9]*|[0-9]*[A-Z]?[a-z]+[0-9]*")
_PLURAL_ACRONYM = re.compile(r"[A-Z]+[a-z]$")
_PICTOGRAPH = re.compile(rf"[{PICTOGRAPHS}]")


@cache
def _unsegmented() -> re.Pattern[str]:
    return re.compile(rf"[{UNSEGMENTED}]")


@cache
def _syllable() -> re.Pattern[str]:
    return re.compile(rf"[{HAN}{HANGUL}]")


_ARABIC_AND_HEBREW_POINTS = "\u0640" + "".join(
    map(chr, [*range(0x64B, 0x656), 0x670, *range(0x591, 0x5BE), 0x5BF, 0x5C1, 0x5C2, 0x5C4, 0x5C5, 0x5C7])
)
_VARIATION_SELECTORS = "".join(map(chr, range(0xFE00, 0xFE10)))
FOLDED: dict[int, int | None] = {
    **dict.fromkeys(map(ord, _ARABIC_AND_HEBREW_POINTS + INVISIBLE + _VARIATION_SELECTORS)),
    **dict.fromkeys(map(ord, "\u0622\u0623\u0625\u0671"), 0x627),
    0x649: 0x64A,
    0x629: 0x647,
}
"""Vowel points that most texts leave out, invisible characters, variation selectors; and the spellings
of Arabic that are used for one another: alef with its signs, alef maksura and ya, ta marbuta and ha."""

ARTICLE = "[\u0648\u0628\u0643\u0641]?\u0627\u0644|\u0644\u0644"
"""The Arabic article, alone or after a conjunction or preposition: it is written as one with its word."""

LETTERS = "\u0621-\u063a\u0641-\u064a"
"""Letters of Arabic itself. A word with a letter of Persian or Urdu is none of its words."""

_ARTICLE = re.compile(f"(?:{ARTICLE})(?=[{LETTERS}]{{3}})")
_ARABIC = re.compile(f"(?!.*[\u0671-\u06d3]).*[{LETTERS}]", re.DOTALL)

_UNSEEN = dict.fromkeys(map(ord, INVISIBLE + "\u0640"))
_UNIFIED = str.maketrans({"\u2019": "'", "\u2010": "-", "\u2011": "-", "\\": None})


def fold(word: str) -> str:
    """A word as it is compared: compatibility forms, case and invisible characters folded away."""
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
    return folded.translate(FOLDED).replace("i\u0307", "i")


def fold_identifier(word: str) -> str:
    """An identifier folded: one kind of apostrophe and hyphen, no backslash that Markdown had needed."""
    return word.lower().replace("\\", "") if word.isascii() else fold(word.translate(_UNIFIED))


def is_unsegmented(word: str) -> bool:
    """Whether a word found in a text is a run of a script that is indexed by pairs of characters."""
    return not word.isascii() and _unsegmented().match(word) is not None


def is_pictograph(word: str) -> bool:
    """Whether a word found in a text is an emoji."""
    return _PICTOGRAPH.match(word) is not None


def find(text: str) -> list[str]:
    """The words of a text in order, as they stand there: identifiers whole, unsegmented scripts in runs."""
    return (_ASCII_WORD if text.isascii() else _word()).findall(text)


def locate(text: str) -> list[tuple[int, int, str]]:
    """The same with the offsets of each word: (start, end, word)."""
    pattern = _ASCII_WORD if text.isascii() else _word()
    return [(match.start(), match.end(), match[0]) for match in pattern.finditer(text)]


def terms(text: str) -> list[str]:
    """The index form of a text: its terms in order, with repeats.

    A word is one term; an identifier is there whole and in its parts (`real-time`, `real`, `time`);
    Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese are pairs of characters, and Han and Hangul
    single characters as well, so that a query of one finds something. No term is longer than
    `MAX_TERM`, none holds a NUL or a lone surrogate.
    """
    return list(chain.from_iterable(map(_remembered.__getitem__, find(text))))


class _Remembered(dict[str, tuple[str, ...]]):
    """word → its terms, worked out when a word is first met. Words not met for long are forgotten:
    when it is full, only what is asked for again comes back from the generation before.
    """

    def __init__(self) -> None:
        super().__init__()
        self._before: dict[str, tuple[str, ...]] = {}

    def __missing__(self, word: str) -> tuple[str, ...]:
        found = self._before.get(word)
        if found is None:
            found = tuple([term for _, _, term in analyse(word, singles=True)])
        if len(word) <= MAX_TERM:
            if len(self) >= _REMEMBERED:
                self._before = self.copy()
                self.clear()
            self[word] = found
        return found


_remembered = _Remembered()


def terms_of_word(word: str) -> tuple[str, ...]:
    """The index form of one word as `find` gives it."""
    return _remembered[word]


def smallest_terms(word: str) -> list[str]:
    """The terms that any text has in which the word stands, also inside a longer identifier."""
    if is_unsegmented(word):
        return [term for _, _, term in _pairs(word, singles=False) if len(term) > 1]
    if _PICTOGRAPH.match(word):
        return [word]
    return [term for match in _PARTS.finditer(word) if (term := _part(match[0])[0][2])]


def analyse(word: str, *, singles: bool = False) -> list[tuple[int, int, str]]:
    """The terms of one word as `find` gives it, each with its offsets in the word: (start, end, term).

    `singles` adds the single characters of Han and Hangul runs, which the index has and a query of
    more than one character does not ask for.
    """
    if is_unsegmented(word):
        return _pairs(word, singles=singles)
    if _PICTOGRAPH.match(word):
        return [(0, len(word), word)]
    spans = [match.span() for match in _PARTS.finditer(word)]
    found: list[tuple[int, int, str]] = []
    if spans != [(0, len(word))]:
        whole = fold_identifier(word).replace("'", "")
        found.append((0, len(word), whole[:MAX_TERM]))
        if len(spans) > 1 and _VERSION.match(word):
            found.append((1, len(word), whole[1 : MAX_TERM + 1]))
            found.append((1, spans[0][1], plain_term(word[1 : spans[0][1]])))
    for start, end in spans:
        found += [(start + low, start + high, term) for low, high, term in _part(word[start:end])]
    return found if word.isascii() else [each for each in found if each[2]]  # a lone tatweel folds to nothing


def parts(word: str) -> list[str]:
    """The parts of an identifier as written, between its joiners and its apostrophes."""
    return _BETWEEN_APOSTROPHES.findall("'".join(_PARTS.findall(word)))


def plain_term(word: str) -> str:
    """The term of a word without joiners. What makes words of one stem alike belongs here."""
    if not word.isascii() and _ARABIC.match(word):
        word = _arabic_stem(unicodedata.normalize("NFKC", word).translate(_UNSEEN))
    return fold(word)[:MAX_TERM]


def _arabic_stem(word: str) -> str:
    """An Arabic word without article, conjunction, preposition, pronoun and ending, which are all written as
    one with it. XQuAD's recall@10 by words: .950 as written, .974 without the article, .983 by its stem.

    Snowball's Arabic stemmer: https://snowballstem.org/algorithms/arabic/stemmer.html. It leaves an article
    after a conjunction where it is, so that is taken off first; and one ending may hide another.
    """
    if article := _ARTICLE.match(word):
        word = word[article.end() :]
    with _stemming:  # a stemmer is for one thread at a time
        stem = _arabic_stemmer().stemWord
        return str(stem(stem(word)))


_stemming = Lock()


@cache
def _arabic_stemmer() -> Stemmer.Stemmer:
    import Stemmer

    return Stemmer.Stemmer("arabic")


def _pairs(run: str, *, singles: bool) -> list[tuple[int, int, str]]:
    """Pairs of characters of a run; a Thai letter and its marks are one character here.

    Offsets are those of the characters the pair was folded from.
    """
    characters = [
        (match.start(), match.end(), each)
        for match in _CLUSTER.finditer(run)
        for each in _FOLDED_CLUSTER.findall(fold(match[0]))
    ]
    if len(characters) == 1:
        return characters
    found = [(first[0], second[1], first[2] + second[2]) for first, second in pairwise(characters)]
    if singles:
        found += [each for each in characters if _syllable().match(each[2])]
    return found


_CLUSTER = re.compile(
    r"[\u1100-\u115f\ua960-\ua97f]+[\u1160-\u11a7\ud7b0-\ud7c6]*[\u11a8-\u11ff\ud7cb-\ud7fb]*"
    rf"|[^\s][\u3099\u309a\uff9e\uff9f]?[{SOUTH_EAST_ASIAN_MARKS}]*"
)
"""What is folded together: a decomposed Hangul syllable, a letter with its marks, or one character."""

_FOLDED_CLUSTER = re.compile(rf"[\s\S][{SOUTH_EAST_ASIAN_MARKS}]{{0,7}}")


def _part(part: str) -> list[tuple[int, int, str]]:
    """A part without joiners: `don't` is dont, `user's` is user, `HTTPServer` also http and server."""
    if "'" not in part and "\u2019" not in part:
        return _humps(part)
    pieces = [match.span() for match in _BETWEEN_APOSTROPHES.finditer(part)]
    last_start, last_end = pieces[-1]
    if part[last_start:last_end] in {"s", "S"}:
        return _part(part[: pieces[-2][1]])
    joined = "".join(part[start:end] for start, end in pieces)
    found = [(0, len(part), plain_term(joined))]
    for start, end in pieces:
        if len(fold(part[start:end])) >= SHORTEST_AT_APOSTROPHE:
            found += [(start + low, start + high, term) for low, high, term in _humps(part[start:end])]
    return found


def _humps(word: str) -> list[tuple[int, int, str]]:
    """A plain word, and the words of camel case inside it."""
    whole = (0, len(word), plain_term(word))
    if len(word) > MAX_TERM or word[1:].islower() or word.isupper() or word.isdigit():
        return [whole]
    shape = word if word.isascii() else _shape(word)
    humps = [match.span() for match in _HUMP.finditer(shape)]
    if not 1 < len(humps) <= _MAX_HUMPS or _PLURAL_ACRONYM.match(shape):
        return [whole]
    return [whole, *((start, end, fold(word[start:end])) for start, end in humps if end - start > 1)]


def _shape(word: str) -> str:
    """The word with A for capitals, a for other letters and 0 for digits; a mark is as its letter is."""
    shape = ""
    for character in word:
        if unicodedata.combining(character):
            shape += shape[-1:]
        elif character.isupper() and character.lower() != character:
            shape += "A"
        else:
            shape += "0" if character.isdigit() else "a"
    return shape
