"""Whether two rules say the same: near in meaning, and with nothing in them that sets one against the other.

Vectors put "always use tabs" and "never use tabs", 2 and 4 spaces, or tea for Alice and for Bob next to each
other. So nearness alone merges nothing: what rules deny, prefer, order, number and name is compared by words.
Where in doubt two rules are two: a person sees both, while of two that were merged one is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from engine.memory.terms import stems
from engine.text.words import find, fold, is_unsegmented, terms

SAME = 0.85
"""Nearness from which two rules may be one. Of 14 pairs of paraphrases 11 lie above it with the bundled model
(.84 to .98), as do 12 of 19 pairs of contraries, which their words tell apart."""

UNREAD = 0.5
"""How far a model must read a text for its nearness to count; below, words alone are compared."""

SAME_TERMS = 0.8
"""Share of terms two rules have in common to be one, where the model does not read them."""

_DENIALS = re.compile(
    r"\b(?:not|never|cannot|without|avoid\w*|refrain\w*|none|neither|nor|no|nobody|nothing|forbid\w*|\w+n['\u2019]t|dont"
    r"|nicht|nie|niemals|kein\w*|ohne|vermeide\w*|verbiet\w*"
    r"|pas|jamais|aucune?|sans|\u00e9vite\w*|nunca|jam\u00e1s|sin|evita\w*|mai|senza|n\u00e3o|sem|niet|nooit|geen"
    r"|zonder|\u043d\u0435|\u043d\u0435\u0442|\u043d\u0438\u043a\u043e\u0433\u0434\u0430|\u0431\u0435\u0437|"
    r"\u043d\u0435\u043b\u044c\u0437\u044f)\b"
    r"|\u4e0d|\u522b|\u52ff|\u6ca1|\u6c92|\u7981\u6b62|\u907f\u514d|\u306a\u3044|\u307e\u305b\u3093",
    re.IGNORECASE,
)
"""Words that deny, in ten languages. French `ne` is left out: it stands beside another of them."""

_TURNS = {
    **dict.fromkeys(("instead", "rather", "than", "over"), "rather"),
    **dict.fromkeys(("not", "never", "avoid", "don't", "dont", "without", "no"), "not"),
    **dict.fromkeys(("before", "until"), "before"),
    **dict.fromkeys(("after", "once"), "after"),
    "from": "from",
    "if": "if",
    "unless": "unless",
}
"""Words after which it matters what stands: "pnpm instead of npm" is not "npm instead of pnpm"."""

_PALE_WORDS = """
a an the of in on at to for with and or by as is are be been it its this that these those all any every
each when while always only also please should must shall will would can may do does make sure ensure use
using used add keep put set give take have has prefer prefers like likes love want choose apply follow
more most very new your you user users their his her they he she we our i me my them there here so then
directly straight immediately simply just
"""
_PALE = frozenset(_PALE_WORDS.split())
"""Words that two wordings of one rule may have or lack."""

_ALIKE = {
    **dict.fromkeys(("reply", "respond", "answer", "response", "repli"), "answer"),
    **dict.fromkeys(("run", "execute", "execut"), "run"),
    **dict.fromkeys(("delete", "remove", "delet", "remov", "erase", "eras"), "delete"),
    **dict.fromkeys(("write", "compose", "compos"), "write"),
    **dict.fromkeys(("short", "brief", "concise", "concis"), "short"),
    **dict.fromkeys(("indent", "indentation"), "indent"),
    **dict.fromkeys(("function", "method"), "function"),
}

_CONTRARIES = """
before/after enable/disable allow/forbid include/exclude more/less first/last approve/reject accept/reject
accept/decline start/stop on/off open/close true/false always/sometimes minimum/maximum increase/decrease
public/private above/below long/short
"""
_CONTRARY = tuple(pair.split("/") for pair in _CONTRARIES.split())

_NOUNS_ARE_CAPITALS = re.compile(
    r"\b(?:der|die|das|den|dem|des|ein|eine|einen|einem|und|oder|nicht|kein\w*|nie|immer|zum|zur|f\u00fcr|mit|vor|nach"
    r"|im|am|auf|bei|zu|von|wenn)\b"
)
"""Words of German, where a capital says nothing."""

_IDENTIFIER = re.compile(r"\w[._/@:#-]\w|\d|[a-z][A-Z]")
_SENTENCE_END = re.compile(r"[.!?:;]\s*$")


def same(one: str, other: str, nearness: float | None, *, reads: float = 1.0) -> bool:
    """Whether two rules are one. `nearness` is 1 for the same meaning and 0 for none in common (None: not
    known); `reads` is how far the model that judged reads them (0..1).
    """
    if folded(one) == folded(other):
        return True
    if nearness is None or contrary(one, other):
        return False
    if reads < UNREAD:
        return _overlap(one, other) >= SAME_TERMS
    return nearness >= SAME


def folded(text: str) -> str:
    """A rule as it is compared letter by letter: without case, marks at its ends, and runs of blanks."""
    return " ".join(fold(text).split()).strip(" .!?;:,\"'`*_\u201c\u201d\u201e\u3002")


def contrary(one: str, other: str) -> bool:
    """Whether words say that two rules are not one, however near they are."""
    return (
        _denials(one) != _denials(other)
        or _turned(one, other)
        or _particular(one, other)
        or _opposite(one, other)
        or _swapped(one, other)
    )


def _denials(text: str) -> int:
    return len(_DENIALS.findall(text))


def _turned(one: str, other: str) -> bool:
    """Whether what follows a word such as `instead of` is another thing that both rules name."""
    ours, theirs = _following(one), _following(other)
    both = set(_content(one)) & set(_content(other))
    return any(
        ours[word] != theirs[word] and (ours[word] ^ theirs[word]) & both
        for word in ours.keys() & theirs.keys()
    )


def _following(text: str) -> dict[str, set[str]]:
    """What stands next after each word of `_TURNS`, but for pale words."""
    found: dict[str, set[str]] = {}
    waiting: list[str] = []
    for word in find(text):
        lower = fold(word)
        if lower in _TURNS:
            waiting.append(_TURNS[lower])
        elif lower not in _PALE and waiting:
            for each in waiting:
                found.setdefault(each, set()).add(_stem(lower))
            waiting = []
    return found


def _particular(one: str, other: str) -> bool:
    """Whether one names a number, an identifier or a name that the other does not."""
    ours, theirs = ({fold(word) for word in find(text)} for text in (one, other))
    return bool(_particulars(one) - theirs or _particulars(other) - ours)


def _particulars(text: str) -> set[str]:
    found, begins = set(), True
    names = _NOUNS_ARE_CAPITALS.search(text) is None
    for match in re.finditer(r"\S+", text):
        for word in find(match[0]):
            is_name = names and word[0].isupper() and not begins and not is_unsegmented(word)
            if is_name or _IDENTIFIER.search(word):
                found.add(fold(word))
            begins = False
        begins = bool(_SENTENCE_END.search(match[0]))
    return found


def _opposite(one: str, other: str) -> bool:
    """Whether one has a word and the other its contrary."""
    ours, theirs = ({fold(word) for word in find(text)} for text in (one, other))
    ours, theirs = ours - theirs, theirs - ours
    return any((a in ours and b in theirs) or (b in ours and a in theirs) for a, b in _CONTRARY)


def _swapped(one: str, other: str) -> bool:
    """Whether they are the same but for one word in the place of another."""
    ours, theirs = Counter(_content(one)), Counter(_content(other))
    return (ours - theirs).total() == 1 == (theirs - ours).total()


def _content(text: str) -> list[str]:
    """The stems of the words that carry what a rule says."""
    lower = (fold(word) for word in find(text) if not is_unsegmented(word))
    return [
        _stem(word) for word in lower if word not in _PALE and word not in _DENYING and word not in _TURNING
    ]


_DENYING = frozenset({"not", "never", "avoid", "don't", "dont", "no", "cannot", "can't"})
_TURNING = frozenset({"instead", "rather", "than", "over", "of"})


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    (stemmed,) = stems([word])
    return _ALIKE.get(word) or _ALIKE.get(stemmed) or stemmed


def _overlap(one: str, other: str) -> float:
    """Share of the terms of both that both have."""
    ours, theirs = set(terms(one)), set(terms(other))
    return len(ours & theirs) / max(1, len(ours | theirs))
