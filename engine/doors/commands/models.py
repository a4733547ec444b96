"""`noctuary models`: the embedding models, which makes the vectors and which answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session
from engine.doors.commands.compare import compare
from engine.doors.progress import PullBar
from engine.text.amounts import count

if TYPE_CHECKING:
    from engine import Engine
    from engine.notes.model import ModelRow

MODEL = click.argument("model", metavar="PROVIDER[/MODEL]")


HAS_ALL = "It has all its vectors, and answers from now on."
MAKES = "Running consoles and workers make its vectors from now on; the model before it answers meanwhile."


@click.group(invoke_without_command=True)
@parameters.JSON
@click.pass_context
def models(ctx: click.Context, *, as_json: bool) -> int:
    """List the embedding models, test one, or change to another."""
    if ctx.invoked_subcommand is not None:
        return exits.DONE
    return session.run(lambda engine: _list(engine, as_json=as_json), application="noctuary models")


async def _list(engine: Engine, *, as_json: bool) -> int:
    embedders = engine.notes.embedders
    found = await embedders.listing()
    if as_json:
        output.dump({"wanted": embedders.wanted, "models": found})
        return exits.DONE
    if found:
        output.table([_row(each) for each in found])
    if not any(each.making for each in found):
        output.say(f"{embedders.wanted} is wanted, and the index has no vectors of it yet.")
    if embedders.trouble:
        output.say(f"The model makes no vectors: {embedders.trouble}")
    return exits.DONE


def _row(each: ModelRow) -> tuple[str, ...]:
    uses = {
        (True, True): "in use",
        (True, False): "being made; the other answers meanwhile",
        (False, True): "answers until the new one has its vectors",
    }
    total = each.embedded + each.pending + each.failed
    return (
        each.name,
        f"{each.provider}/{each.model}",
        count(each.dimension, "number"),
        f"{each.embedded:,} of {count(total, 'passage')}",
        uses.get((each.making, each.answers), "kept"),
    )


@models.command()
@MODEL
@parameters.JSON
def use(model: str, *, as_json: bool) -> int:
    """Change to another model.

    Such as multilingual, ollama/nomic-embed-text or bundled. Its vectors are made in the background by the
    console, `watch` and `worker`; until they are there the model before it answers. The old vectors are kept,
    so that the change can be undone at once.
    """
    as_json = parameters.json_wanted(as_json=as_json)
    provider, name = parameters.provider_and_model(model)

    async def work(engine: Engine) -> int:
        chosen = await engine.notes.embedders.choose(provider, name)
        if as_json:
            output.dump({"chosen": chosen})
        else:
            rows = {row.name: row for row in await engine.notes.embedders.listing()}
            complete = chosen in rows and rows[chosen].embedded and not rows[chosen].pending
            output.say(f"{chosen} is chosen. {HAS_ALL if complete else MAKES}")
        return exits.DONE

    return session.run(work, application="noctuary models")


@models.command()
@click.argument("model", metavar="[PROVIDER[/MODEL]]", required=False)
@parameters.JSON
def test(model: str | None, *, as_json: bool) -> int:
    """Ask a model for vectors now.

    Does it work, how fast is it, and does it tell an owl from a train?
    """
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        provider, name = parameters.provider_and_model(model) if model else (None, None)
        tried = await engine.notes.embedders.tried(provider, name)
        if as_json:
            output.dump(tried)
            return exits.DONE
        output.say(
            f"{tried.model} works: vectors of {tried.dimension} numbers, ready after"
            f" {tried.ready_seconds:.1f} s, a question in {tried.query_ms:.0f} ms,"
            f" {tried.passages_per_second:.0f} short passages a second."
        )
        output.say(
            f"The answer lies at {tried.answer_distance:.2f}, the nearest wrong passage at"
            f" {tried.other_distance:.2f}; evidence ends at {tried.default_distance:.2f}."
        )
        return exits.DONE

    return session.run(work, application="noctuary models")


@models.command()
@click.argument("model")
@parameters.JSON
def pull(model: str, *, as_json: bool) -> int:
    """Have Ollama fetch an embedding model, such as nomic-embed-text."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        with PullBar() as bar:
            async for part in engine.notes.embedders.pull(model):
                bar(part)
        if as_json:
            output.dump({"pulled": model})
        else:
            output.say(f"{model} is there. `noctuary models use ollama/{model}` changes to it.")
        return exits.DONE

    return session.run(work, application="noctuary models")


@models.command()
@click.argument("name")
@parameters.JSON
def remove(name: str, *, as_json: bool) -> int:
    """Remove the vectors of a model that is not in use; `noctuary models` shows the names."""
    as_json = parameters.json_wanted(as_json=as_json)

    async def work(engine: Engine) -> int:
        await engine.notes.embedders.forget(name)
        if as_json:
            output.dump({"removed": name})
        else:
            output.say(f"The vectors of {name} are removed.")
        return exits.DONE

    return session.run(work, application="noctuary models")


models.add_command(compare)
