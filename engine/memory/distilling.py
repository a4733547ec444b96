"""Distilling: a cluster of turns is shown to a language model, which answers with one rule or with NONE.

Turns are data in fences. What the model writes is hostile: it is read strictly, the model is told once what
is wrong with it, and after that it is a failure that is seen; nothing half is ever taken for a rule.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from engine import prompts
from engine.errors import OutputError
from engine.language import Purpose
from engine.memory.lesson_changes import LONGEST_RULE, cleaned
from engine.memory.model import Kind
from engine.models.language.base import Finish, Message, Role
from engine.text.fencing import blunted, shortened, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.language import Language
    from engine.memory.model import SourceTurn
    from engine.models.language.base import Completion

VERSION = "distill_v1"
PARTS = {"system": ("nothing", "longest"), "nothing": (), "user": ("turns", "nothing"), "nudge": ("why",)}

NOTHING = "NONE"
"""What says that turns teach nothing."""

TURNS = 20
"""Turns of a cluster that are shown: corrections first, then the newest. All of them stay its evidence."""

ENTRY_TOKENS = 400
"""Tokens of one entry that are shown: a pasted file says nothing more with its second page."""

LOCAL_TOKENS, HOSTED_TOKENS = 2_000, 6_000
"""Tokens of turns in one prompt, for a model in the house and for a provider's."""

RULE_TOKENS = 300
"""Of an answer: several times a rule."""

TRIES = 2

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_FENCE = re.compile(r"\s*(?:```|~~~)\s*\w*\s*")
_LABEL = re.compile(
    r"^[*_]*(?:the\s+)?(?:standing\s+)?(?:rule|lesson|regel|answer)[*_]*\s*[:\uff1a][*_]*\s*", re.IGNORECASE
)
_BULLET = re.compile(r"^(?:[-*\u2022]|1[.)])\s+")
_QUOTES = ('""', "''", "``", "**", "__", "\u201c\u201d", "\u201e\u201c", "\u00ab\u00bb", "\u2018\u2019")
_NONE = re.compile(r"(?i:none)[.!]?|NONE\b\s*[-.,:;(\u2013\u2014].*")
_REFUSAL = re.compile(
    r"(?:i['\u2019]?m sorry|sorry,|i (?:cannot|can['\u2019]?t|am unable|am not able)|as an ai\b"
    r"|i apologi[sz]e)",
    re.IGNORECASE,
)
_MARK = re.compile(r"[<\u2039]\s*/?\s*memory\b|^\[\d+\]", re.IGNORECASE)

LEAST_ECHO = 24
"""Characters of the prompt in an answer that are no coincidence."""


class Unusable(Exception):
    """What was written is no rule; says why, to the model."""


class Distiller:
    """Has clusters distilled by the configured model."""

    def __init__(self, language: Language) -> None:
        self._language = language

    async def rule(self, turns: Sequence[SourceTurn]) -> str | None:
        """The rule that the turns teach; None where they teach nothing.

        Raises:
            OutputError: what the model wrote is no rule, also after it was told so.
            LanguageError: the model cannot be had.
            BudgetError: the day's tokens are spent.
        """
        messages = [
            Message(Role.SYSTEM, system()),
            Message(Role.USER, prompt(turns, LOCAL_TOKENS if self._language.local else HOSTED_TOKENS)),
        ]
        why = ""
        for _ in range(TRIES):
            said = await self._language.complete(Purpose.DISTIL, messages, max_tokens=RULE_TOKENS)
            if said.finish is Finish.REFUSED:
                raise OutputError(f"{self._language.name} refused to distil this.")
            try:
                return _read(said)
            except Unusable as error:
                why = str(error)
            messages += [Message(Role.ASSISTANT, said.text or "-"), Message(Role.USER, _nudge(why))]
        raise OutputError(
            f"{self._language.name} wrote no rule: {why}",
            remedy="Distil it by hand, or set another CHAT_MODEL.",
        )


def system() -> str:
    """What a distilling model is told of its task; nothing of any turn is in it."""
    loaded = _prompt()
    return loaded.part("system", nothing=loaded.part("nothing"), longest=str(LONGEST_RULE))


def prompt(turns: Sequence[SourceTurn], tokens: int = HOSTED_TOKENS, *, code: str | None = None) -> str:
    """The turns as a distilling model is shown them, as far as about so many tokens reach. `code` is the
    random word of the fences.
    """
    loaded, code = _prompt(), code or secrets.token_hex(8)
    chosen = sorted(_chosen(turns, tokens, code), key=lambda turn: (turn.at, turn.packet))
    told = "\n\n".join(_block(number, turn, code) for number, turn in enumerate(chosen, 1))
    return loaded.part("user", turns=told, nothing=loaded.part("nothing"))


def _chosen(turns: Sequence[SourceTurn], tokens: int, code: str) -> list[SourceTurn]:
    """The turns that are shown: corrections before others, the newest first; one is always there."""
    chosen: list[SourceTurn] = []
    for turn in sorted(
        turns, key=lambda turn: (turn.kind is Kind.CORRECTION, turn.at, turn.packet), reverse=True
    ):
        tokens -= size(_block(len(chosen), turn, code))
        if chosen and (tokens < 0 or len(chosen) == TURNS):
            break
        chosen.append(turn)
    return chosen


def read(text: str) -> str | None:
    """The rule in what a model wrote; None where it says that there is none.

    Raises:
        Unusable: it is neither.
    """
    lines = [line for line in _THINKING.sub("", text).splitlines() if not _FENCE.fullmatch(line)]
    lines = [bare for line in lines if (bare := _unwrapped(line))]
    if len(lines) == 2 and lines[0].endswith((":", "\uff1a")):
        del lines[0]
    if not lines:
        raise Unusable("it is empty.")
    if _NONE.fullmatch(lines[0]):
        return None
    if len(lines) > 1:
        raise Unusable(f"it has {len(lines)} lines.")
    rule = lines[0]
    if _REFUSAL.match(rule):
        raise Unusable("it is no rule, but an excuse.")
    if _MARK.search(rule) or _echoes(rule):
        raise Unusable("it repeats what you were given.")
    if len(rule) > LONGEST_RULE:
        raise Unusable(f"it has {len(rule):,} characters.")
    return cleaned(rule)


def _read(said: Completion) -> str | None:
    if said.finish is Finish.LENGTH:
        raise Unusable("it is far too long.")
    return read(said.text)


def _unwrapped(line: str) -> str:
    """The line without what surrounds a rule: a bullet, a label, quotes, emphasis."""
    before = None
    while line != before:
        before = line
        line = _LABEL.sub("", _BULLET.sub("", line.strip()))
        for pair in _QUOTES:
            if len(line) > 2 and line[0] == pair[0] and line[-1] == pair[1]:
                line = _peeled(line, pair)
    return line


def _peeled(text: str, pair: str) -> str:
    inner = text[1:-1]
    return inner if pair[0] not in inner.strip(pair) and pair[1] not in inner.strip(pair) else text


def _echoes(rule: str) -> bool:
    """Whether it is a piece of our own prompt."""
    loaded = _prompt()
    ours = " ".join(" ".join(loaded.parts[part].casefold().split()) for part in PARTS)
    bare = " ".join(rule.casefold().split()).strip(" -.:")
    return len(bare) >= LEAST_ECHO and bare in ours


def _block(number: int, turn: SourceTurn, code: str) -> str:
    """What was said in a turn, each entry in its fence. What was recalled text is left out."""
    when = f"{turn.at:%Y-%m-%d %H:%M}"
    kind = ", a correction" if turn.kind is Kind.CORRECTION else ""
    who = f"the user{f' {_line(turn.speaker)}' if turn.speaker else ''}"
    entries = []
    if not turn.input_recalled:
        entries.append(_fenced(f"[{number}] {who}, {when}{kind}", turn.input, code))
    if turn.response and not turn.response_recalled:
        entries.append(_fenced(f"[{number}] the assistant answered", turn.response, code))
    return "\n".join(entries)


def _fenced(head: str, text: str, code: str) -> str:
    told = text.strip()
    if size(told) > ENTRY_TOKENS:
        told = shortened(told, ENTRY_TOKENS)
    return f"<memory {code}>\n{head}\n\n{blunted(told)}\n</memory {code}>"


def _line(text: str) -> str:
    return blunted(" ".join(text.split())[:100])


def _nudge(why: str) -> str:
    loaded = _prompt()
    return loaded.part("nudge", why=why, nothing=loaded.part("nothing"), longest=str(LONGEST_RULE))


def _prompt() -> prompts.Prompt:
    return prompts.load(VERSION, "distill", PARTS)
