"""`noctuary models`: the embedding models, which makes the vectors and which answers."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from engine.doors import exits, output, parameters, session

if TYPE_CHECKING:
    from engine import Engine
    from engine.models.embedding.base import Embedder
    from engine.notes.embedders import Served
    from engine.notes.models import Counted

MODEL = click.argument("model", metavar="PROVIDER[/MODEL]")

SAMPLE = (
    "The boiler was serviced in March; the next service is due in a year.",
    "Sourdough needs a day: feed it in the morning, bake it in the evening.",
    "The train to the coast leaves at seven from the second platform.",
    "Owls hunt at night and sleep in hollow trees by day.",
)
"""Short notes that a model is tried on."""

QUESTION = "When do owls hunt?"


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
    making, serving = embedders.making, embedders.serving
    found = await embedders.listing()
    if as_json:
        output.dump({"models": [_described(each, making, serving) for each in found]})
        return exits.DONE
    output.table([_row(each, making, serving) for each in found])
    if making is None:
        output.say(f"{embedders.wanted} is in use, and the index has no vectors of it yet.")
    return exits.DONE


def _described(each: Counted, making: Served | None, serving: Served | None) -> dict[str, object]:
    counts = {"embedded": each.embedded, "pending": each.pending, "failed": each.failed}
    return {
        **asdict(each.known),
        **counts,
        "makes_vectors": making is not None and making.id == each.known.id,
        "answers": serving is not None and serving.id == each.known.id,
    }


def _row(each: Counted, making: Served | None, serving: Served | None) -> tuple[str, ...]:
    known = each.known
    made = making is not None and making.id == known.id
    answers = serving is not None and serving.id == known.id
    uses = {
        (True, True): "in use",
        (True, False): "being made; the other answers meanwhile",
        (False, True): "answers until the new one has its vectors",
    }
    total = each.embedded + each.pending + each.failed
    return (
        f"{known.provider}/{known.model}",
        known.name,
        f"{known.dimension} numbers",
        f"{each.embedded:,} of {total:,} passages",
        uses.get((made, answers), "kept"),
    )


@models.command()
@MODEL
@parameters.JSON
def use(model: str, *, as_json: bool) -> int:
    """Change to another model: ollama/nomic-embed-text, multilingual, bundled, …

    Its vectors are made in the background by the console, `watch` and `worker`; until they are there the
    model before it answers, and its vectors are kept, so that the change can be undone at once.
    """
    provider, name = _parsed(model)

    async def work(engine: Engine) -> int:
        chosen = await engine.notes.embedders.choose(provider, name)
        if as_json:
            output.dump({"chosen": chosen})
        else:
            output.say(f"{chosen} is chosen. Running consoles and workers make its vectors from now on.")
        return exits.DONE

    return session.run(work, application="noctuary models")


@models.command()
@click.argument("model", metavar="[PROVIDER[/MODEL]]", required=False)
@parameters.JSON
def test(model: str | None, *, as_json: bool) -> int:
    """Ask a model for vectors now: does it work, how fast, and does it tell an owl from a train?"""

    async def work(engine: Engine) -> int:
        from engine.models.embedding.base import embedder_of
        from engine.notes.embedders import wanted

        if model is None:
            embedder = await wanted(engine.database, engine.settings)
        else:
            embedder = embedder_of(*_parsed(model), engine.settings)
        try:
            tried = await _tried(embedder)
        finally:
            await embedder.close()
        if as_json:
            output.dump(tried)
        else:
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


@dataclass(frozen=True, slots=True)
class Tried:
    """What a model did when it was tried; distances are cosine distances to the question."""

    provider: str
    model: str
    dimension: int
    ready_seconds: float
    query_ms: float
    passages_per_second: float
    answer_distance: float
    other_distance: float
    default_distance: float


async def _tried(embedder: Embedder) -> Tried:
    start = time.perf_counter()
    await embedder.ready()
    await embedder.query(QUESTION)
    ready = time.perf_counter()
    question = await embedder.query(QUESTION)
    asked = time.perf_counter()
    passages = await embedder.passages(SAMPLE)
    made = time.perf_counter()
    *others, answer = (1 - passages @ question).tolist()
    return Tried(
        provider=embedder.provider,
        model=embedder.model_id,
        dimension=embedder.dimension,
        ready_seconds=ready - start,
        query_ms=(asked - ready) * 1000,
        passages_per_second=len(SAMPLE) / (made - asked),
        answer_distance=answer,
        other_distance=min(others),
        default_distance=embedder.default_distance,
    )


@models.command()
@click.argument("name")
@parameters.JSON
def remove(name: str, *, as_json: bool) -> int:
    """Remove the vectors of a model that is not in use; `noctuary models` shows the names."""

    async def work(engine: Engine) -> int:
        await engine.notes.embedders.forget(name)
        if as_json:
            output.dump({"removed": name})
        else:
            output.say(f"The vectors of {name} are removed.")
        return exits.DONE

    return session.run(work, application="noctuary models")


def _parsed(model: str) -> tuple[str, str | None]:
    provider, _, name = model.partition("/")
    return provider, name or None
