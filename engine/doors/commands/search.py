"""`noctuary search`: citations with their lines, as text or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from engine.doors import exits, output, parameters, session
from engine.notes.model import MOST_CITATIONS, NO_EVIDENCE, FreshnessState, Mode
from engine.text.amounts import count

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from engine.notes.model import Citation, Freshness, SearchResult


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--k", "k", type=click.IntRange(1, MOST_CITATIONS), help="How many citations at most.")
@click.option(
    "--path",
    "path_glob",
    type=parameters.TEXT,
    metavar="GLOB",
    help="Only files whose path matches, as in 'work/**/*.md'.",
)
@click.option("--folder", type=parameters.PATH, help="Only this folder of notes.")
@click.option(
    "--heading", type=parameters.TEXT, metavar="TEXT", help="Only below a heading that contains this."
)
@click.option(
    "--mode",
    type=click.Choice([str(mode) for mode in Mode]),
    default=str(Mode.HYBRID),
    show_default=True,
    help="Search by words, by meaning, or by both.",
)
@click.option(
    "--max-distance",
    type=click.FloatRange(0, 2),
    help="The largest cosine distance that still answers; 0 is the same, 2 the opposite.",
)
@click.option("--explain", is_flag=True, help="Show each citation's rank and score in every list.")
@parameters.JSON
def search(
    query: tuple[str, ...],
    *,
    k: int | None,
    path_glob: str | None,
    folder: Path | None,
    heading: str | None,
    mode: str,
    max_distance: float | None,
    explain: bool,
    as_json: bool,
) -> int:
    """Find passages and cite their lines.

    Several words need no quotes of the shell; "quoted phrases" match as they stand. Put -- before a
    query that begins with a dash. Exit status 1 when nothing is found.
    """
    asked = " ".join(query)
    if not asked.strip():
        raise click.UsageError("The query is empty.", click.get_current_context())

    async def work(engine: Engine) -> int:
        result = await engine.notes.search(
            asked,
            k=k,
            path_glob=path_glob,
            folder=folder,
            heading=heading,
            mode=Mode(mode),
            max_distance=max_distance,
        )
        found = [(citation, await engine.notes.freshness(citation)) for citation in result.citations]
        if as_json:
            matches = {} if path_glob is None else {"path_matches": result.path_matches}
            output.dump({"citations": [as_object(*item, explain=explain) for item in found], **matches})
        else:
            _print(result, found, explain=explain)
        for sentence in result.notes:
            output.note(sentence)
        if not found and not await engine.notes.folders():
            output.note("No folder of notes yet. `noctuary index FOLDER` reads one.")
        elif not result.path_matches:
            output.note(_no_such_path(path_glob, folder))
        return exits.DONE if found else exits.FOUND_NOTHING

    return session.run(work, application="noctuary search")


def as_object(citation: Citation, freshness: Freshness, *, explain: bool) -> dict[str, Any]:
    """A citation for JSON: knowman's five names first, then ours."""
    found: dict[str, Any] = {
        "path": citation.path,
        "line_start": citation.line_start,
        "line_end": citation.line_end,
        "text": citation.text,
        "distance": citation.distance,
        "score": citation.score,
        "heading": list(citation.heading),
        "folder": citation.folder,
        "copies": citation.copies,
        "freshness": freshness,
    }
    return found | {"explanation": citation.explanation} if explain else found


def _print(result: SearchResult, found: list[tuple[Citation, Freshness]], *, explain: bool) -> None:
    if not found:
        output.say(NO_EVIDENCE)
    for citation, freshness in found:
        stale = "" if freshness.state is FreshnessState.SAME else f"  ({freshness})"
        output.say(f"{citation.reference}{stale}")
        if explain:
            for line in _explained(citation):
                output.say(line)
        output.say_text(output.indent(citation.text))
        output.say()
    if explain and found:
        output.say(f"{count(len(found), 'citation')} by {result.mode} search in {result.seconds:.3f} s")


def _no_such_path(path_glob: str | None, folder: Path | None) -> str:
    inside = f" in {folder}" if folder is not None else ""
    return (
        f"No indexed file{inside} matches --path {path_glob!r}. "
        "The pattern is of paths within a folder of notes, as in 'work/**/*.md'."
    )


def _explained(citation: Citation) -> list[str]:
    lines = [f"  folder   {citation.folder}"]
    if citation.heading:
        lines.append(f"  heading  {' > '.join(citation.heading)}")
    why = citation.explanation
    if why is not None:
        lines.append(f"  keyword  {_place(why.keyword_rank, 'score', why.keyword_score)}")
        lines.append(f"  vector   {_place(why.vector_rank, 'distance', why.vector_score)}")
    distance = "unknown" if citation.distance is None else f"{citation.distance:.3f}"
    lines.append(f"  fused    score {citation.score:.3f}, distance {distance}")
    return lines


def _place(rank: int | None, measure: str, value: float | None) -> str:
    return "not in this list" if rank is None or value is None else f"rank {rank}, {measure} {value:.3f}"
