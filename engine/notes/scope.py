"""Filters of a search: folder, path glob and heading, resolved to the passages that may answer."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.database.bulk import array, every
from engine.errors import QueryError
from engine.notes.disk import nameable
from engine.notes.named import folders_there_are
from engine.settings.paths import real
from engine.text.safe import spelt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from psycopg import AsyncConnection


# Packed numbers, not rows: eighty thousand rows cost fifty milliseconds, their bytes cost three.
_PASSAGES = """
    SELECT string_agg(int4send(chunk.passage), ''::bytea)
    FROM chunk JOIN file ON file.id = chunk.file
    WHERE (%(root)s::integer IS NULL OR file.folder = %(root)s)
        AND (%(below)s = '' OR starts_with(file.path, %(below)s))
        AND (%(files)s::integer[] IS NULL OR file.id = ANY(%(files)s::integer[]))
"""
_BY_HEADING = """
        AND EXISTS (SELECT FROM passage WHERE passage.id = chunk.passage
            AND position(lower(%(heading)s) IN lower(passage.heading)) > 0)
"""
_WITHIN = """
    FROM file
    WHERE (%(root)s::integer IS NULL OR folder = %(root)s)
        AND (%(below)s = '' OR starts_with(path, %(below)s))
"""
# Ids only grow, so the same number of files with the same last one are the same files.
_STATE = "SELECT count(*), max(id)" + _WITHIN
_PATHS = "SELECT id, path" + _WITHIN

_SPECIAL = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class Scope:
    """What a search is held to. `passages` is None when that is everything.

    `places` are the conditions on a passage's place, parameters of a statement: `root` (a folder's id or
    None), `below` (how a path begins, '' for any) and `files` (ids for a cast to integer[], or None).
    """

    places: Mapping[str, int | str | None]
    passages: NDArray[np.int32] | None

    @property
    def path_matches(self) -> bool:
        """Whether the path pattern, if there is one, fits any indexed file."""
        return self.places["files"] != array([])


EVERYTHING = Scope({"root": None, "below": "", "files": None}, None)


class Scopes:
    """Resolves filters. The files of the last glob are remembered: as-you-type asks at every key."""

    def __init__(self) -> None:
        self._last: tuple[tuple[object, ...], str] | None = None

    async def resolve(
        self, connection: AsyncConnection, *, folder: Path | None, path_glob: str | None, heading: str | None
    ) -> Scope:
        """The files and passages that the filters let through.

        `path_glob` reads like a line of `.gitignore`: `*.md` at any depth, `/a.md` at the root, `projects/`
        and all below it, `**` for any folders. `heading` is a part of any heading above the passage.

        Raises:
            QueryError: nothing is indexed in the folder, or the glob is no pattern.
        """
        if folder is None and path_glob is None and heading is None:
            return EVERYTHING
        root, below = (None, "") if folder is None else await _root_of(connection, folder)
        places = {"root": root, "below": below and below + "/", "files": None}
        if path_glob is not None:
            places["files"] = await self._files(connection, places, path_glob)
        statement = _PASSAGES if heading is None else _PASSAGES + _BY_HEADING
        cursor = await connection.execute(
            statement, {**places, "heading": spelt(heading or "").replace("\0", "")}
        )
        row = await cursor.fetchone()
        return Scope(places, await asyncio.to_thread(_distinct, row[0] if row else None))

    async def _files(
        self, connection: AsyncConnection, places: Mapping[str, int | str | None], path_glob: str
    ) -> str:
        """The files that match, as a parameter."""
        within = {"root": places["root"], "below": places["below"] or _beginning(path_glob)}
        cursor = await connection.execute(_STATE, within)
        asked = (path_glob, *places.values(), *(await cursor.fetchone() or ()))
        if self._last is None or self._last[0] != asked:
            rows = await every(await connection.execute(_PATHS, within))
            matching = await asyncio.to_thread(_matching, rows, path_glob)
            self._last = asked, await asyncio.to_thread(array, matching)
        return self._last[1]


def _distinct(ids: bytes | None) -> NDArray[np.int32]:
    import numpy as np

    return np.unique(unpacked(ids))


def unpacked(ids: bytes | None) -> NDArray[np.int32]:
    """Ids that the database packed with int4send, as an array."""
    import numpy as np

    return np.frombuffer(ids or b"", dtype=">i4").astype(np.int32)


def _beginning(path_glob: str) -> str:
    """The folders with which every path that a glob matches begins: '' when it may match anywhere."""
    literal = _SPECIAL.split(path_glob.rstrip(" "), maxsplit=1)[0]
    anchored = "/" in path_glob.strip(" ")[:-1]
    # What is not printable may be nothing the database can take.
    return literal[: literal.rfind("/") + 1].lstrip("/") if anchored and literal.isprintable() else ""


async def _root_of(connection: AsyncConnection, folder: Path) -> tuple[int, str]:
    """The root a folder belongs to, and its path within that root."""
    wanted = real(folder)
    cursor = await connection.execute("SELECT id, path FROM folder ORDER BY length(path) DESC")
    known = await cursor.fetchall()
    for identity, path in known:
        if wanted.is_relative_to(path):
            below = wanted.relative_to(path).as_posix()
            if below == ".":
                return identity, ""
            if nameable(below) and await _holds_notes(connection, identity, below):
                return identity, below
            raise QueryError(f"Nothing is indexed in the folder {folder}.", remedy="Check its spelling.")
    names = folders_there_are(path for _, path in known)
    raise QueryError(f"The folder {folder} is not indexed.", remedy=names)


async def _holds_notes(connection: AsyncConnection, root: int, below: str) -> bool:
    cursor = await connection.execute(_STATE, {"root": root, "below": below + "/"})
    return bool((await cursor.fetchone() or (0,))[0])


def _matching(rows: Sequence[tuple[int, str]], path_glob: str) -> list[int]:
    from pathspec import GitIgnoreSpec

    pattern = "\\" + path_glob if path_glob[:1] in {"!", "#"} else path_glob
    try:
        spec = GitIgnoreSpec.from_lines([pattern])
    except ValueError as error:  # GitIgnorePatternError is one, and is not exported
        raise QueryError(f"{path_glob!r} is not a path pattern.", remedy="Try `projects/**/*.md`.") from error
    return [identity for identity, path in rows if spec.match_file(path)]
