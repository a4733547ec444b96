"""What the Eval view says: the last run, how it went before, and the questions as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.content import Content

from engine.text.amounts import count
from tui.ages import ago
from tui.text import content, line
from tui.widgets.row_list import Column, Row

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from engine.notes.evaluated import EvalAnswer, EvalRun

BARS = "▁▂▃▄▅▆▇█"

PAST = 40
"""Runs that the sparkline shows at most."""

COLUMNS = (Column("", 1), Column("Question", share=3), Column("Cited", path=True, share=2))


@dataclass(frozen=True, slots=True)
class EvalSnapshot:
    """The last run with its answers, and the runs of the same file, oldest first."""

    last: EvalRun | None
    runs: tuple[EvalRun, ...] = ()


def sparkline(values: Sequence[float]) -> str:
    """Shares from 0 to 1 as bars, scaled between the lowest and the highest so that a change is seen."""
    if not values:
        return ""
    low, high = min(values), max(values)
    if high == low:
        return BARS[-1 if high == 1 else len(BARS) // 2] * len(values)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in values)


def headline(snapshot: EvalSnapshot, now: datetime) -> Content:
    """The last run in knowman's line, with what else is measured."""
    run = snapshot.last
    if run is None:
        return content("")
    told = [run.line]
    if run.recall is not None and run.mrr is not None:
        told.append(f"recall@k: {run.recall:.2%} · MRR: {run.mrr:.4f} · {run.model} · {ago(run.at, now)}")
    return Content("\n").join(
        [line(told[0], "bold"), *(line(each) for each in told[1:]), line(run.dataset, "dim")]
    )


def history(snapshot: EvalSnapshot) -> Content:
    """The runs before as a line of bars, with what the bars mean in figures."""
    shares = [run.groundedness for run in snapshot.runs][-PAST:]
    if not shares:
        return content("")
    bounds = f"{min(shares):.0%} to {max(shares):.0%}" if min(shares) < max(shares) else f"{shares[0]:.0%}"
    return line(f"{sparkline(shares)}  {count(len(shares), 'run')}, {bounds}")


def rows(snapshot: EvalSnapshot) -> list[Row]:
    """The questions, those that failed first."""
    if snapshot.last is None:
        return []
    answers = sorted(snapshot.last.answers, key=lambda each: each.correct)
    return [_row(each) for each in answers]


def _row(answer: EvalAnswer) -> Row:
    cited = answer.cited[0] if answer.cited else "nothing"
    sign, tone = ("✓", "muted") if answer.correct else ("✗", "error")
    return Row(answer.id, (sign, answer.question, cited), (tone, "", "muted"))


def described(answer: EvalAnswer) -> Content:
    """Everything about a question."""
    cited = ", ".join(answer.cited) or "nothing"
    where = f"; the right one is number {answer.rank}" if answer.rank and not answer.correct else ""
    return content(f"{answer.id}: expected {answer.expected}\ncited {cited}{where}", "dim")
