"""What the doors of memory share: whose memory is meant, and how a lesson, a turn and a run are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine.memory.model import BrainKey, ClusterState
from engine.text.amounts import count

if TYPE_CHECKING:
    from engine.memory.model import GivenLesson, Source, SynthesisRun
    from engine.settings import Settings

NOT_KNOWN = "Nothing is known of that here."

MOST_RULES = 1_000
"""Rules that are recorded at once."""

_LESSON = re.compile(r"[Ll]?([1-9]\d{0,9})")
_MOST = 2**31 - 1

OUTCOMES = {
    ClusterState.WAITING: "it waits on",
    ClusterState.CREATED: "a new lesson",
    ClusterState.STRENGTHENED: "a lesson that said nearly the same was strengthened",
    ClusterState.TOMBSTONED: "not written: a person had deleted nearly the same",
    ClusterState.NOTHING: "nothing durable in it",
}
"""What became of a cluster, in words."""


def key(settings: Settings, core: str | None, user: str | None) -> BrainKey:
    """The brain that is meant at this machine, by what was said and else by the settings."""
    return BrainKey(core=core or settings.core, user=user or settings.user or "")


def lesson_id(reference: str) -> int | None:
    """The number of a lesson called L12 or 12; None where it is no such name."""
    found = _LESSON.fullmatch(reference.strip())
    return int(found[1]) if found and int(found[1]) <= _MOST else None


def rules(value: object) -> list[tuple[int, str | None]]:
    """What was distilled: a list of objects with `cluster_id` and `text`, which may be null.

    Raises:
        ValueError: it is something else; the sentence says what is wrong.
    """
    if not isinstance(value, list) or len(value) > MOST_RULES:
        raise ValueError(f"has to be a list of at most {MOST_RULES:,} rules")
    return [_distilled(each) for each in value]


def _distilled(value: object) -> tuple[int, str | None]:
    cluster, text = (value.get("cluster_id"), value.get("text")) if isinstance(value, dict) else (None, None)
    if isinstance(cluster, bool) or not isinstance(cluster, int) or not isinstance(text, str | None):
        raise ValueError("has to be a list of objects with `cluster_id`, a number, and `text`")  # noqa: TRY004
    return cluster, text


def rule(lesson: GivenLesson) -> str:
    """A lesson on one line, as it is given with a turn."""
    return f"{' '.join(lesson.text.split())} (L{lesson.id})"


def said(source: Source) -> str:
    """Who said a turn that is recalled, when, and how far it is believed: one line."""
    who = " ".join(source.speaker.split()) or "the user"
    kind = f"{source.kind}{', recalled text' if source.recalled else ''}"
    return (
        f"{source.at:%Y-%m-%d %H:%M} {who} said ({kind}, similarity {source.similarity:.2f}, confidence"
        f" {source.confidence:.2f}):"
    )


def came_of(run: SynthesisRun) -> str:
    """What a learning step came to, in a sentence."""
    done = [
        (run.created, "created"),
        (run.strengthened, "strengthened"),
        (run.tombstoned, "not written, as a person had deleted the like"),
        (run.nothing, "with nothing durable"),
        (run.failed, "failed"),
        (run.waiting, "waiting"),
    ]
    told = ", ".join(f"{number:,} {what}" for number, what in done if number) or "nothing to learn"
    return f"{count(run.packets_scanned, 'new turn')} read: {told}."
