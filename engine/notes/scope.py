"""Filters of a search: folder, path glob and heading, resolved to the passages that may answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from psycopg import AsyncConnection


# Packed numbers, not rows: eighty thousand rows cost fifty milliseconds, their bytes cost three.
_BY_FILES = "SELECT string_agg(int4send(passage), ''::bytea) FROM chunk WHERE file = ANY(%(files)s)"
_BY_HEADING = """
    SELECT string_agg(int4send(chunk.passage), ''::bytea)
    FROM chunk JOIN passage ON passage.id = chunk.passage
    WHERE (%(files)s::integer[] IS NULL OR chunk.file = ANY(%(files)s))
        AND position(lower(%(heading)s) IN lower(passage.heading)) > 0
"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search is held to: None means everything."""

    files: tuple[int, ...] | None
    passages: NDArray[np.int32] | None


EVERYTHING = Scope(None, None)


async def resolve(
    connection: AsyncConnection, *, folder: Path | None, path_glob: str | None, heading: str | None
) -> Scope:
    """The files and passages that the filters let through.

    `path_glob` reads like a line of `.gitignore`: `*.md` at any depth, `/a.md` at the root, `projects/`
    and all below it, `**` for any folders. `heading` is a part of any heading above the passage.

    Raises:
        QueryError: the folder is not indexed or the glob is no pattern.
    """
    import numpy as np

    if folder is None and path_glob is None and heading is None:
        return EVERYTHING
    files: list[int] | None = None
    if folder is not None or path_glob is not None:
        files = await _files(connection, folder, path_glob)
    statement = _BY_FILES if heading is None else _BY_HEADING
    cursor = await connection.execute(
        statement, {"files": files, "heading": (heading or "").replace("\0", "")}
    )
    row = await cursor.fetchone()
    passages = np.unique(unpacked(row[0] if row else None))
    return Scope(None if files is None else tuple(files), passages)


def unpacked(ids: bytes | None) -> NDArray[np.int32]:
    """Ids that the database packed with int4send, as an array."""
    import numpy as np

    return np.frombuffer(ids or b"", dtype=">i4").astype(np.int32)


async def _files(connection: AsyncConnection, folder: Path | None, path_glob: str | None) -> list[int]:
    root = None
    below = ""
    if folder is not None:
        root, below = await _root_of(connection, folder)
    cursor = await connection.execute(
        "SELECT file.id, file.path FROM file WHERE %(root)s::integer IS NULL OR file.folder = %(root)s",
        {"root": root},
    )
    rows = await cursor.fetchall()
    if below:
        rows = [row for row in rows if row[1].startswith(below + "/")]
    if path_glob is None:
        return [row[0] for row in rows]
    return _matching(rows, path_glob)


async def _root_of(connection: AsyncConnection, folder: Path) -> tuple[int, str]:
    """The root a folder belongs to, and its path within that root."""
    wanted = folder.expanduser().resolve()
    cursor = await connection.execute("SELECT id, path FROM folder ORDER BY length(path) DESC")
    known = await cursor.fetchall()
    for identity, path in known:
        if wanted.is_relative_to(path):
            below = wanted.relative_to(path).as_posix()
            return identity, "" if below == "." else below
    names = ", ".join(path for _, path in known) or "none"
    raise QueryError(f"The folder {folder} is not indexed.", remedy=f"Indexed folders: {names}.")


def _matching(rows: Sequence[tuple[int, str]], path_glob: str) -> list[int]:
    from pathspec import GitIgnoreSpec

    pattern = "\\" + path_glob if path_glob[:1] in {"!", "#"} else path_glob
    try:
        spec = GitIgnoreSpec.from_lines([pattern])
    except ValueError as error:  # GitIgnorePatternError is one, and is not exported
        raise QueryError(f"{path_glob!r} is not a path pattern.", remedy="Try `projects/**/*.md`.") from error
    return [identity for identity, path in rows if spec.match_file(path)]
