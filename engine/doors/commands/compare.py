"""`noctuary models compare`: labelled questions asked of several models, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, output, parameters, session
from engine.doors.progress import CompareBar
from engine.text.amounts import count

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from engine.notes.model import Compared, Comparison

MANY = 20
"""Ids shown of a kind; the rest is a number, and all are in the JSON."""

LIKELY = 0.05
"""Chance above which a difference is called one that chance makes."""


@click.command()
@click.argument("file", type=parameters.PATH)
@click.option(
    "--model",
    "models",
    type=parameters.TEXT,
    metavar="PROVIDER[/MODEL]",
    multiple=True,
    help="A model to compare; give it once for each. Without it, all that have nearly all their vectors.",
)
@click.option(
    "--embed/--no-embed",
    default=True,
    show_default=True,
    help="First make the vectors that are missing, or go by those there are.",
)
@parameters.JSON
def compare(file: Path, *, models: tuple[str, ...], embed: bool, as_json: bool) -> int:
    """Compare models by the labelled questions of FILE.

    Each question is asked as `noctuary search` asks it, of every model and of keywords alone. FILE is a JSON
    list of objects with id, question, expect ("citation" or "negative") and expect_path_contains, if you
    like also expect_lines ("path:L3-L9") and k. What answers searches stays as it is; `noctuary models use`
    changes that. Exit status 2 when a model that you name could not be measured, or none could.
    """
    as_json = parameters.json_wanted(as_json=as_json)
    named = [parameters.provider_and_model(each) for each in models]

    async def work(engine: Engine) -> int:
        with CompareBar() as bar:
            found = await engine.notes.comparer.compare(file, named, embed=embed, tell=bar)
        if as_json:
            output.dump(as_object(found))
        else:
            _print(found)
        left_out = [row for row in found.rows if row.left_out]
        return exits.ERROR if left_out and (named or len(found.measured) == 1) else exits.DONE

    return session.run(work, application="noctuary models")


def as_object(found: Comparison) -> dict[str, Any]:
    """A comparison for JSON: the models, then every question with what each of them made of it."""
    verdict = found.verdict()
    return {
        "best": found.best.name,
        "against": verdict
        and {
            "name": verdict.other.name,
            "gained": verdict.gained,
            "lost": verdict.lost,
            "chance": verdict.chance,
        },
        "distance": found.distance,
        "absent": found.absent,
        "models": [_row_as_object(row) for row in found.rows],
        "questions": [
            {
                "id": question.id,
                "question": question.text,
                "expect": question.expect,
                "k": k,
                "models": {row.name: _answer_as_object(row, number) for row in found.measured},
            }
            for number, (question, k) in enumerate(zip(found.questions, found.k, strict=True))
        ],
    }


def _row_as_object(row: Compared) -> dict[str, Any]:
    return {
        "name": row.name,
        "provider": row.provider or None,
        "model": row.model or None,
        "in_use": row.in_use,
        "embedded": row.embedded if row.passages else None,
        "passages": row.passages or None,
        "left_out": row.left_out or None,
        "caution": row.caution or None,
        "hybrid": row.score,
        "meaning": row.meaning,
    }


def _answer_as_object(row: Compared, number: int) -> dict[str, Any]:
    answers = {"hybrid": row.answers, "meaning": row.meaning_answers}
    return {
        mode: {
            "right": found[number].right,
            "rank": found[number].rank,
            "cited": found[number].cited,
            "ms": found[number].seconds * 1000,
        }
        for mode, found in answers.items()
        if found
    }


def _print(found: Comparison) -> None:
    at = f"@{found.k[0]}" if len(set(found.k)) == 1 else "@k"
    heads = ("model", "right", f"recall{at}", "MRR", f"by meaning{at}", "median", "p95", "vectors", "")
    output.table([heads, *(_cells(row, best=row is found.best) for row in found.measured)])
    for row in found.rows:
        if row.left_out:
            vectors = f" ({row.embedded:,} of {count(row.passages, 'vector')})" if row.passages else ""
            output.say(f"Not measured: {row.name}{vectors}. {row.left_out}")
        if row.caution:
            output.say(f"{row.name}: {row.caution}")
    output.say()
    for sentence in _sentences(found):
        output.say(sentence)


def _cells(row: Compared, *, best: bool) -> tuple[str, ...]:
    score, meaning = row.score, row.meaning
    if score is None:  # pragma: no cover - those that were not measured are told in sentences
        return (row.name, *[""] * 8)
    marks = [mark for mark, holds in (("best", best), ("in use", row.in_use)) if holds]
    return (
        row.name,
        f"{score.right}/{score.questions}",
        _share(score.recall),
        _share(score.mrr),
        _share(meaning.recall if meaning else None),
        f"{score.median_ms:.0f} ms",
        f"{score.p95_ms:.0f} ms",
        f"{row.embedded:,}/{row.passages:,}" if row.provider else "–",
        ", ".join(marks),
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _sentences(found: Comparison) -> list[str]:
    lines = []
    verdict = found.verdict()
    if verdict is not None:
        differing = len(verdict.gained) + len(verdict.lost)
        against = f"{verdict.best.name} against {verdict.other.name}"
        if not differing:
            lines.append(f"{against}: right in the same questions.")
        else:
            lines.append(
                f"{against}: {len(verdict.gained)} more right, {len(verdict.lost)} fewer;"
                f" chance {'may' if verdict.chance > LIKELY else 'hardly'} explain that"
                f" (sign test, p = {verdict.chance:.2g})."
            )
    for names, ids in found.disputed():
        lines.append(f"Right only with {_listed(names)}: {_some(ids)}")
    if unanswered := found.unanswered():
        lines.append(f"Right with none: {_some(unanswered)}")
    if found.absent:
        lines.append(f"No indexed note is what these ask for: {_some(found.absent)}")
    if found.distance is not None:
        lines.append(
            f"RETRIEVAL_MAX_DISTANCE is {found.distance:g} for every model; unset, each has its own distance."
        )
    return lines


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _some(ids: tuple[str, ...]) -> str:
    more = f" and {len(ids) - MANY:,} more" if len(ids) > MANY else ""
    return ", ".join(ids[:MANY]) + more
