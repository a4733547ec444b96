"""`noctuary eval`: labelled questions asked of the search, runs kept, a question made of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, output, parameters, session
from engine.doors.progress import EvalBar
from engine.errors import DatasetError
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from engine import Engine
    from engine.notes.evaluated import EvalAnswer, EvalRun

RUN = "run"

SHOWN = 3
"""Citations told of a question that failed."""


class Verbs(click.Group):
    """A group whose own name runs: what is none of its verbs is the FILE."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the verb that is meant before what was typed."""
        first = next((word for word in args if word != "--json"), "")
        if first not in self.commands and first not in ctx.help_option_names:
            args = [RUN, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, or the run."""
        return run if cmd_name == RUN else super().get_command(ctx, cmd_name)


@click.group(
    "eval",
    cls=Verbs,
    subcommand_metavar="[FILE] [--json] | add | history",
    epilog="A FILE that is called like a verb is named ./add. Exit status 1 when a question was not answered "
    "rightly.",
)
@parameters.JSON
def evaluate(*, as_json: bool) -> None:
    """Ask labelled questions, and say how many the search answers rightly.

    FILE is a JSON list of objects with id, question, expect ("citation" or "negative") and
    expect_path_contains, if you like also expect_lines ("path:L3-L9") and k. Without it the last file is
    run again, or the one that `noctuary eval add` makes.
    """
    del as_json  # asked for by the verbs


eval = evaluate  # noqa: A001 - by its own name the command is looked up


@click.command(RUN)
@click.argument("file", type=parameters.PATH, required=False)
@parameters.JSON
def run(file: Path | None, *, as_json: bool) -> int:
    """Ask the questions of FILE."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        with EvalBar() as bar:
            found = await engine.evaluation.run(file, on_step=bar)
        if as_json:
            output.dump(as_object(found))
        else:
            _print(found)
        return exits.FOUND_NOTHING if found.failing else exits.DONE

    return session.run(work, application="noctuary eval")


@evaluate.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many runs.")
@parameters.JSON
def history(limit: int, *, as_json: bool) -> int:
    """Show the runs before, newest last."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        runs = await engine.evaluation.history(limit)
        if as_json:
            output.dump({"runs": [as_object(each, answers=False) for each in runs]})
            return exits.DONE
        if runs:
            output.table([_cells(each) for each in reversed(runs)])
        else:
            output.note("No run yet.")
        return exits.DONE

    return session.run(work, application="noctuary eval")


@evaluate.command()
@click.argument("question", type=parameters.TEXT)
@click.argument("file", type=parameters.PATH, required=False)
@click.option(
    "--expect",
    type=parameters.TEXT,
    metavar="PATH:L3-L9",
    help="Where the answer stands. Without it the first citation that is found now.",
)
@click.option("--negative", is_flag=True, help="Nothing in the notes answers it.")
@click.option(
    "--id", "identity", type=parameters.TEXT, help="The question's id. Without it made of its words."
)
@click.option("--k", type=click.IntRange(1, 200), help="How many citations may be needed.")
@parameters.JSON
def add(
    question: str,
    file: Path | None,
    *,
    expect: str | None,
    negative: bool,
    identity: str | None,
    k: int | None,
    as_json: bool,
) -> int:
    """Make a search a labelled question, in FILE or in eval.json of the configuration folder."""
    as_json = parameters.json_wanted(as_json=as_json)
    if expect and negative:
        raise click.UsageError("--expect and --negative exclude each other.", click.get_current_context())

    async def work(engine: Engine) -> int:
        answer = None if negative else expect or await _first(engine, question)
        added, where = await engine.evaluation.add(question, answer, path=file, identity=identity, k=k)
        if as_json:
            output.dump({"file": where, "question": added})
            return exits.DONE
        output.say(f"{where}: {added.id}, answered by {answer or 'nothing'}.")
        return exits.DONE

    return session.run(work, application="noctuary eval")


async def _first(engine: Engine, question: str) -> str:
    """The best citation that is found now.

    Raises:
        DatasetError: nothing is found.
    """
    found = (await engine.notes.search(question, k=1, trace=False)).citations
    if not found:
        raise DatasetError(
            f"Nothing is found for {question!r}.",
            remedy="With --expect say where the answer stands; with --negative, that nothing answers.",
        )
    return found[0].reference


def as_object(run: EvalRun, *, answers: bool = True) -> dict[str, Any]:
    """A run for JSON; knowman's names first."""
    found: dict[str, Any] = {
        "groundedness": run.groundedness,
        "correct": run.correct,
        "total": run.total,
        "delta": run.delta,
        "recall_at_k": run.recall,
        "mrr": run.mrr,
        "k": run.k,
        "model": run.model,
        "dataset": run.dataset,
        "seconds": run.seconds,
        "id": run.id,
        "at": run.at,
    }
    if answers:
        found |= {"failing": run.failing, "answers": run.answers, "other_questions": run.other_questions}
    return found


def _print(run: EvalRun) -> None:
    output.say(run.line)
    if run.recall is not None and run.mrr is not None:
        output.say(f"recall@k: {run.recall:.2%}, MRR: {run.mrr:.4f}, by {run.model} in {run.seconds:.1f} s")
    if run.other_questions:
        output.note("The file was another when it was run before.")
    failing = [each for each in run.answers if not each.correct]
    for each in failing:
        output.say(f"failed {each.id}: {each.question}")
        output.say(f"    expected {each.expected}, {_cited(each)}")


def _cited(answer: EvalAnswer) -> str:
    if not answer.cited:
        return "nothing was cited"
    more = len(answer.cited) - SHOWN
    rest = f" and {count(more, 'more', 'more')}" if more > 0 else ""
    where = "" if answer.rank is None else f"; the right one is number {answer.rank}"
    return f"cited {', '.join(answer.cited[:SHOWN])}{rest}{where}"


def _cells(run: EvalRun) -> Sequence[str]:
    return (
        f"{run.at.astimezone():%Y-%m-%d %H:%M}",
        f"{run.groundedness:.2%}",
        f"{run.correct}/{run.total}",
        f"{run.delta:+.2%}",
        "" if run.mrr is None else f"MRR {run.mrr:.3f}",
        run.model,
        run.dataset,
    )
