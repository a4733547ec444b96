"""`noctuary search`: citations with their lines, as text or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import click

from engine.doors import exits, narrowing, output, parameters, session
from engine.notes.model import NO_EVIDENCE, FreshnessState
from engine.text.amounts import count

if TYPE_CHECKING:
    from engine import Engine
    from engine.notes.answered import SearchOptions
    from engine.notes.model import Citation, Freshness, SearchResult


@click.command()
@click.argument("query", nargs=-1, required=True)
@narrowing.options
@click.option("--explain", is_flag=True, help="Show each citation's rank and score in every list.")
@parameters.JSON
def search(
    query: tuple[str, ...],
    *,
    explain: bool,
    as_json: bool,
    **narrowed: Unpack[SearchOptions],
) -> int:
    """Find passages and cite their lines.

    Several words need no quotes of the shell; "quoted phrases" match as they stand. Put -- before a
    query that begins with a dash. Exit status 1 when nothing is found.
    """
    asked = narrowing.question(query)

    async def work(engine: Engine) -> int:
        result = await engine.notes.search(asked, **narrowed)
        found = await narrowing.checked(engine, result.citations)
        if as_json:
            narrow = narrowed["path_glob"] is not None
            matches = {"path_matches": result.path_matches} if narrow else {}
            output.dump({"citations": [as_object(*item, explain=explain) for item in found], **matches})
        else:
            _print(result, found, explain=explain)
        for sentence in result.notes:
            output.note(sentence)
        if not found:
            await narrowing.explain_nothing(engine, narrowed, path_matches=result.path_matches)
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
        show(citation, freshness, explain=explain)
    if explain and found:
        output.say(f"{count(len(found), 'citation')} by {result.mode} search in {result.seconds:.3f} s")


def show(citation: Citation, freshness: Freshness, *, explain: bool = False) -> None:
    """A citation with its text, and a blank line."""
    output.say(reference(citation, freshness))
    if explain:
        for line in _explained(citation):
            output.say(line)
    output.say_text(output.indent(citation.text))
    output.say()


def reference(citation: Citation, freshness: Freshness) -> str:
    """`path:Lstart-Lend`, and what became of it on the disk."""
    stale = "" if freshness.state is FreshnessState.SAME else f"  ({freshness})"
    return f"{citation.reference}{stale}"


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
