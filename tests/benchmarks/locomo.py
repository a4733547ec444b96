"""LoCoMo: ten long conversations between two people, and questions with the turns that answer them.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (2024). A picture that
someone shows is known by its caption, which stands before what is said. Evidence is named as `D8:6`; a few
names are written otherwise, or name a turn that is not there. Without these 1,982 questions have evidence.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from figures import data

_NAMED = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Turn:
    """What was said, in which session (1 is the first)."""

    name: str
    session: int
    speaker: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Question:
    """What is asked, and the names of the turns that answer it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """The turns, oldest first, and what is asked about them."""

    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def conversations() -> list[Conversation]:
    """All ten."""
    return [_conversation(each) for each in json.loads(data("locomo/locomo10.json").read_text())]


def _conversation(given: dict[str, Any]) -> Conversation:
    turns: list[Turn] = []
    talk = given["conversation"]
    for session in count(1):
        if f"session_{session}_date_time" not in talk:
            break
        told = f"{talk[f'session_{session}_date_time']} +0000"
        begun = datetime.strptime(told, "%I:%M %p on %d %B, %Y %z")
        for number, said in enumerate(talk.get(f"session_{session}", [])):
            at = begun + timedelta(seconds=number)
            turns.append(Turn(said["dia_id"], session, said["speaker"], _text(said), at))
    known = {turn.name for turn in turns}
    asked = [Question(qa["question"], _evidence(qa) & known) for qa in given["qa"]]
    return Conversation(tuple(turns), tuple(each for each in asked if each.evidence))


def _text(said: dict[str, Any]) -> str:
    caption = said.get("blip_caption")
    return f"(shows a picture: {caption}) {said['text']}" if caption else str(said["text"])


def _evidence(qa: dict[str, Any]) -> frozenset[str]:
    named = _NAMED.findall(" ".join(qa.get("evidence", [])))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in named)
