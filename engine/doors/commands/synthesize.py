"""`noctuary synthesize`: learn from what was said, by the model that is set, one of your own, or by hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, remembering, session
from engine.doors.commands.lessons import HUMAN
from engine.doors.remembering import OUTCOMES, came_of
from engine.errors import ModelError
from engine.text.amounts import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine import Engine
    from engine.memory.model import Cluster, Distilled, SynthesisBatch, SynthesisRun, SynthesisStep

APPLICATION = "noctuary synthesize"


@click.group(invoke_without_command=True)
@click.option("--all", "every", is_flag=True, help="In every core and for every end user.")
@parameters.whose
@parameters.JSON
@click.pass_context
def synthesize(ctx: click.Context, *, every: bool, core: str | None, user: str | None, as_json: bool) -> int:
    """Learn: group new turns that are about the same, and distil a rule of each group.

    The language model of LLM_PROVIDER distils. Without one the groups wait for `noctuary synthesize prepare`,
    or for a person. Exit status 2 when it failed; what was learned before is kept.
    """
    if ctx.invoked_subcommand is not None:
        return exits.DONE

    async def work(engine: Engine) -> int:
        await _vectors(engine)
        learn, on_step = engine.memory.synthesis, _tell if sys.stderr.isatty() else None
        if every:
            runs = await learn.run_all(actor=HUMAN, on_step=on_step)
        else:
            key = remembering.key(engine.settings, core, user)
            runs = [await learn.run(key, actor=HUMAN, on_step=on_step)]
        if as_json:
            output.dump({"runs": runs})
        else:
            _print_runs(runs)
        return exits.ERROR if any(run.state == "failed" for run in runs) else exits.DONE

    return session.run(work, application=APPLICATION)


@synthesize.command()
@parameters.whose
@parameters.JSON
def prepare(*, core: str | None, user: str | None, as_json: bool) -> int:
    """Hand out what is to be distilled, with a token, for a model of your own.

    Its rules are taken by `noctuary synthesize record`. Exit status 1 when there is nothing to learn.
    """
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        await _vectors(engine)
        key = remembering.key(engine.settings, core, user)
        batch = await engine.memory.synthesis.prepare(key, actor=HUMAN)
        if as_json:
            output.dump(
                {
                    "synthesis_token": batch.token,
                    "system": batch.system,
                    "clusters": batch.clusters,
                    "packets_scanned": batch.packets_scanned,
                }
            )
        else:
            _print_batch(batch)
        return exits.DONE if batch.token else exits.FOUND_NOTHING

    return session.run(work, application=APPLICATION)


@synthesize.command()
@click.argument("file", metavar="FILE")
@parameters.whose
@parameters.JSON
def record(file: str, *, core: str | None, user: str | None, as_json: bool) -> int:
    """Take in the rules that a model of your own distilled; - reads standard input.

    FILE is JSON: {"synthesis_token": …, "lessons": [{"cluster_id": 1, "text": "…"}]}. A text that is null:
    nothing durable.
    """
    as_json = parameters.json_wanted(as_json=as_json)
    token, rules = _read(file)

    async def work(engine: Engine) -> int:
        key = remembering.key(engine.settings, core, user)
        outcomes, run = await engine.memory.synthesis.record(key, token, rules, actor=HUMAN)
        if as_json:
            output.dump({"outcomes": outcomes, "run": run})
        else:
            _print_outcomes(outcomes)
        return exits.DONE

    return session.run(work, application=APPLICATION)


@synthesize.command()
@parameters.JSON
def waiting(*, as_json: bool) -> int:
    """List the groups that wait for a distiller, with why the last attempt failed."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        found = await engine.memory.synthesis.waiting()
        if as_json:
            output.dump({"clusters": found})
        elif found:
            output.table([_cluster_cells(each) for each in found])
        else:
            output.note("Nothing waits.")
        return exits.DONE if found else exits.FOUND_NOTHING

    return session.run(work, application=APPLICATION)


@synthesize.command()
@click.argument("cluster", type=click.IntRange(1, 2**31 - 1))
@click.argument("words", nargs=-1, metavar="[RULE]")
@click.option("--nothing", is_flag=True, help="There is nothing durable in it.")
@parameters.JSON
def distil(cluster: int, words: tuple[str, ...], *, nothing: bool, as_json: bool) -> int:
    """Distil a group that waits by hand: in one rule, or as nothing."""
    as_json = parameters.json_wanted(as_json=as_json)
    if nothing == bool(words):
        raise click.UsageError("Give the rule, or say --nothing.", click.get_current_context())
    rule = None if nothing else parameters.words_or_input(words)

    async def work(engine: Engine) -> int:
        outcome = await engine.memory.synthesis.distil(cluster, rule, actor=HUMAN)
        if as_json:
            output.dump(outcome)
        else:
            _print_outcomes([outcome])
        return exits.DONE

    return session.run(work, application=APPLICATION)


@synthesize.command()
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=20, show_default=True, help="How many at most."
)
@parameters.JSON
def runs(*, limit: int, as_json: bool) -> int:
    """Show the runs before and what they came to, newest first."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        found = await engine.memory.synthesis.runs(limit)
        if as_json:
            output.dump({"runs": found})
        elif found:
            output.table([_run_cells(each) for each in found])
        else:
            output.note("No run yet.")
        return exits.DONE if found else exits.FOUND_NOTHING

    return session.run(work, application=APPLICATION)


async def _vectors(engine: Engine) -> None:
    """Make the vectors that are wanting: turns are grouped by them. A model that cannot be had is told of."""
    try:
        await engine.memory.embeddings.run_until_idle()
    except ModelError as error:
        output.note(f"Turns without a vector wait for one: {error}")


def _read(file: str) -> tuple[str, list[tuple[int, str | None]]]:
    """The token and the rules of a file.

    Raises:
        click.UsageError: it cannot be read, or is something else.
    """
    try:
        return _batch(parameters.read_input() if file == "-" else Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except (ValueError, RecursionError) as error:
        why = f"does not hold what was distilled: {error}"
    raise click.UsageError(f"{file} {why}.", click.get_current_context())


def _batch(text: str) -> tuple[str, list[tuple[int, str | None]]]:
    told = json.loads(text)
    if not isinstance(told, dict) or not isinstance(told.get("synthesis_token"), str):
        raise ValueError("it has no `synthesis_token`")  # noqa: TRY004 - one kind for all that is wrong with it
    try:
        return told["synthesis_token"], remembering.rules(told.get("lessons"))
    except ValueError as error:
        raise ValueError(f"`lessons` {error}") from error


def _tell(step: SynthesisStep) -> None:
    output.note(
        f"{step.core}{f'/{step.user}' if step.user else ''}: {step.done:,} of {step.total:,} {step.text}"
    )


def _print_runs(runs: Sequence[SynthesisRun]) -> None:
    if not runs:
        output.say("There is nothing to learn.")
    for run in runs:
        output.say(f"{_whose(run)}: {came_of(run)}")
        for sentence in run.notes:
            output.note(sentence)
        if run.error:
            output.complain("Synthesis", run.error)


def _print_batch(batch: SynthesisBatch) -> None:
    if batch.token is None:
        output.say("There is nothing to learn.")
        return
    output.say("system:")
    output.say_text(output.indent(batch.system))
    for cluster in batch.clusters:
        output.say(f"cluster {cluster.id}:")
        output.say_text(output.indent(cluster.prompt))
    output.say(f"synthesis token: {batch.token}")


def _print_outcomes(outcomes: Sequence[Distilled]) -> None:
    for each in outcomes:
        lesson = f" (L{each.lesson})" if each.lesson is not None else ""
        output.say(f"cluster {each.cluster}: {OUTCOMES[each.state]}{lesson}. {each.note}".strip())


def _cluster_cells(cluster: Cluster) -> tuple[str, ...]:
    return (
        str(cluster.id),
        f"{cluster.created_at.astimezone():%Y-%m-%d %H:%M}",
        _whose(cluster),
        count(cluster.packets, "turn"),
        count(cluster.corrections, "correction"),
        cluster.error,
    )


def _run_cells(run: SynthesisRun) -> tuple[str, ...]:
    at = f"{run.started_at.astimezone():%Y-%m-%d %H:%M}"
    return (at, _whose(run), run.actor, run.state, f"{came_of(run)} {run.error}".strip())


def _whose(row: SynthesisRun | Cluster) -> str:
    return f"{row.core}/{row.user}" if row.user else row.core
