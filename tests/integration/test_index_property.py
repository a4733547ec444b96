"""After any mixture of edits, renames and deletions the index equals the disk, and its tables agree."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.notes import upkeep
from engine.text.tokens import terms

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.vault import Vault

FOLDERS = ["", "sub", "sub/deep", "x.md"]
NAMES = ["a.md", "b.md", "A.md", "🐘.markdown"]
WORDS = ["owl", "swift", "lark", "real-time", "my_var", "日本語", "***"]

paths = st.builds(
    lambda folder, name: f"{folder}/{name}".lstrip("/"), st.sampled_from(FOLDERS), st.sampled_from(NAMES)
)
blocks = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
texts = st.lists(blocks | blocks.map(lambda text: f"# {text}"), max_size=5).map("\n\n".join)
steps = st.one_of(
    st.tuples(st.just("write"), paths, texts),
    st.tuples(st.just("append"), paths, texts),
    st.tuples(st.just("delete"), paths),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("copy"), paths, paths),
    st.tuples(
        st.just("rename"), st.sampled_from(FOLDERS[1:]), st.sampled_from(["moved", "sub/moved", "sub"])
    ),
    st.tuples(st.just("delete"), st.sampled_from(FOLDERS[1:])),
    st.tuples(st.just("work")),
    st.tuples(st.just("work")),
    st.tuples(st.just("tidy")),
)


async def test_index_equals_disk(vault: Vault) -> None:
    """One vault lives through all examples, so that each starts from what the ones before left."""
    # Bounded by the loop and not by hypothesis's clock: the examples share one database.
    vault.write("anchor.md", "The folder is never empty.\n")
    examples: list[list[tuple[str, ...]]] = []

    @settings(max_examples=30, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(steps, min_size=1, max_size=15))
    def gather(example: list[tuple[str, ...]]) -> None:
        examples.append(example)

    gather()
    for example in examples:
        for step in example:
            await _take(vault, step)
        await vault.index()
        assert await vault.in_index() == vault.on_disk(), example
        assert await vault.failures() == {}, example
        await vault.check()
    await _every_live_passage_is_found(vault)


async def _take(vault: Vault, step: tuple[str, ...]) -> None:
    kind, *arguments = step
    if kind == "work":
        await vault.index()
    elif kind == "tidy":
        await vault.rows(
            "UPDATE passage SET orphaned_at = now() - interval '8 days' WHERE orphaned_at IS NOT NULL"
        )
        await upkeep.purge(vault.database)
        async with vault.database.transaction() as connection:
            segments = [
                row[0] for row in await (await connection.execute("SELECT id FROM segment")).fetchall()
            ]
            if segments:
                await upkeep._replace(connection, segments)
    else:
        change(vault.root, kind, *arguments)


def change(root: Path, kind: str, path: str, other: str = "") -> None:
    """One change of the disk; one that is not possible as things stand is left out."""
    try:
        if kind in {"write", "append"}:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            with (root / path).open("w" if kind == "write" else "a") as stream:
                stream.write(other)
        elif kind == "delete":
            shutil.rmtree(root / path) if (root / path).is_dir() else (root / path).unlink()
        elif kind == "rename":
            (root / other).parent.mkdir(parents=True, exist_ok=True)
            (root / path).rename(root / other)
        else:
            (root / other).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / path, root / other)
    except (OSError, shutil.Error):
        return


async def _every_live_passage_is_found(vault: Vault) -> None:
    for text in await vault.passages():
        wanted = terms(text)
        if wanted:
            found = {hit.text for hit in (await vault.notes.search(" ".join(wanted), k=100)).citations}
            assert text in found
