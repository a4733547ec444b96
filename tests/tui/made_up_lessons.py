"""Lessons, clusters and turns that no database holds, for how the pane looks with any text in them."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from engine.memory.lessons import Lessons
from engine.memory.model import (
    AuditRow,
    BrainId,
    Cluster,
    ClusterState,
    Kind,
    Lesson,
    LessonCounts,
    LessonDetail,
    LessonFilter,
    LessonState,
    SourceTurn,
)
from engine.memory.synthesis import Synthesis
from tests.tui.desk import NOON

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

RULES = (
    "Use pnpm, not npm, in every project of this organisation, also for one-off scripts and in CI.",
    "Run the tests before you commit.",
    "Never push on a Friday.",
    "Answer in German when the question is in German.",
    "Indent with tabs.",
    "The owl is a mascot and not a deity.",
)


def lesson(number: int, text: str, odd: str = "") -> Lesson:
    """Each kind of lesson by its number; `odd` stands wherever else a text can."""
    deleted = number % 6 == 5
    return Lesson(
        id=number + 1,
        brain=BrainId(1 + number % 2),
        core="default",
        user=("", f"alice{odd}")[number % 2],
        text=text,
        state=LessonState.DELETED if deleted else LessonState.LIVING,
        created_at=NOON - timedelta(days=1 + 5 * number),
        created_by=f"model ollama/qwen3{odd}",
        expires_at=NOON + timedelta(days=29 - 6 * number, hours=1),
        last_used_at=NOON - timedelta(hours=3 * number) if number % 3 else None,
        uses=number % 3 * 4,
        reinforced=1 + number % 2,
        pinned=number == 2,
        sources=2 + number % 3,
        new=number < 2,
        deleted_at=NOON - timedelta(hours=5) if deleted else None,
        deleted_by=f"human{odd}" if deleted else "",
        reason=f"a joke{odd}" if deleted else "",
    )


def turns(texts: Sequence[str], odd: str = "") -> list[SourceTurn]:
    """A correction, and a turn whose answer was recalled text."""
    return [
        SourceTurn(
            packet=number,
            at=NOON - timedelta(days=2, hours=len(texts) - number),
            channel=f"work{odd}",
            origin=f"claude-code session.jsonl:{7 + number}{odd}",
            kind=[Kind.CORRECTION, Kind.RAW, Kind.OVERWRITE][number % 3],
            speaker=f"alice{odd}",
            input=text,
            input_recalled=number % 3 == 2,
            response=f"Understood: {text}" if odd else "Understood, from now on.",
            response_recalled=number % 2 == 1,
        )
        for number, text in enumerate(texts)
    ]


def cluster(number: int, error: str = "", odd: str = "") -> Cluster:
    """A waiting one."""
    return Cluster(
        id=number,
        brain=BrainId(1 + number % 2),
        core="default",
        user=("", f"alice{odd}")[number % 2],
        run=1,
        state=ClusterState.WAITING,
        packets=2 + number,
        corrections=number % 2,
        cohesion=0.9,
        created_at=NOON - timedelta(minutes=20 * number),
        attempts=1 if error else 0,
        error=error,
    )


def history(odd: str = "") -> list[AuditRow]:
    """Learned, reworded, deleted."""
    return [
        AuditRow(NOON - timedelta(days=3), f"model ollama/qwen3{odd}", "create", 1, None, {"text": "x"}),
        AuditRow(NOON - timedelta(days=2), "human", "edit", 1, {"text": f"Use npm.{odd}"}, {"text": "y"}),
        AuditRow(NOON - timedelta(days=1), f"mcp claude{odd}", "delete", 1, {}, {}, f"a joke{odd}"),
    ]


def make_up(
    monkeypatch: pytest.MonkeyPatch,
    rules: Sequence[str] = RULES,
    said: Sequence[str] = ("Please use pnpm.", "npm again? I said pnpm!"),
    odd: str = "",
) -> None:
    """The engine answers with these."""
    lessons = [lesson(number, text, odd) for number, text in enumerate(rules)]
    clusters = [cluster(1, odd=odd), cluster(2, f"It wrote no rule: {said[0]}{odd}", odd=odd)]

    async def page(
        _self: Lessons, where: LessonFilter, *, offset: int = 0, limit: int = 200, **_options: object
    ) -> tuple[list[Lesson], int]:
        found = [each for each in lessons if where.state in (None, each.state)]
        return found[offset : offset + limit], len(found)

    async def detail(_self: Lessons, wanted: int, _key: object = None) -> LessonDetail:
        found = next(each for each in lessons if each.id == wanted)
        return LessonDetail(found, tuple(turns(said, odd)), tuple(history(odd)))

    async def counts(_self: Lessons) -> LessonCounts:
        return LessonCounts(
            5, 2, 1, 1, len(clusters), NOON - timedelta(days=2), NOON - timedelta(hours=1), NOON
        )

    async def waiting(_self: Synthesis, _limit: int = 200) -> list[Cluster]:
        return clusters

    async def sources(_self: Synthesis, _cluster: int) -> list[SourceTurn]:
        return turns(said, odd)

    monkeypatch.setattr(Lessons, "page", page)
    monkeypatch.setattr(Lessons, "detail", detail)
    monkeypatch.setattr(Lessons, "counts", counts)
    monkeypatch.setattr(Synthesis, "waiting", waiting)
    monkeypatch.setattr(Synthesis, "cluster_sources", sources)
