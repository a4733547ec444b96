"""The root folders of notes: adding, listing, forgetting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import FolderError
from engine.notes.model import Folder, FolderId
from engine.notes.reach import foreign, host, machine
from engine.settings.paths import expanded

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_FOLDERS = """
    SELECT folder.id, folder.path, folder.added_at, count(file.id)
    FROM folder LEFT JOIN file ON file.folder = folder.id
    GROUP BY folder.id ORDER BY folder.path
"""


async def all_folders(connection: AsyncConnection) -> list[Folder]:
    """Every folder with the number of files it has in the index, ordered by path."""
    cursor = await connection.execute(_FOLDERS)
    return [Folder(FolderId(row[0]), Path(row[1]), row[2], row[3]) for row in await cursor.fetchall()]


def checked(path: Path) -> Path:
    """The real path of a folder that can be added.

    Raises:
        FolderError: it does not exist, is not a folder, cannot be read, or its name is not UTF-8.
    """
    try:
        resolved = expanded(path).resolve(strict=True)
        str(resolved).encode("utf-8")
        if not resolved.is_dir():
            raise FolderError(f"{path} is not a folder.", remedy="Give the folder that holds the notes.")
        next(resolved.iterdir(), None)
    except UnicodeEncodeError as error:
        raise FolderError(
            f"The name of folder {path} is not UTF-8.", remedy="Rename it, then add it again."
        ) from error
    except FileNotFoundError as error:
        raise FolderError(f"The folder {path} does not exist.", remedy="Check its spelling.") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        reason = getattr(error, "strerror", None) or str(error)
        raise FolderError(
            f"The folder {path} cannot be read: {reason}.", remedy="Check its rights."
        ) from error
    return resolved


async def add(connection: AsyncConnection, path: Path) -> Folder:
    """Add a folder, or return it when it is there already.

    Raises:
        FolderError: it cannot be read, it is another machine's of the same path, or it lies inside (or
            holds) a folder that is indexed already, which would put the same notes into the index twice.
    """
    resolved = checked(path)
    for folder in await all_folders(connection):
        if folder.path == resolved:
            await _claim(connection, folder)
            return folder
        if resolved.is_relative_to(folder.path) or folder.path.is_relative_to(resolved):
            raise FolderError(
                f"The folder {resolved} overlaps with {folder.path}, which is indexed already.",
                remedy=f"Remove {folder.path} first if {resolved} shall be indexed instead.",
            )
    await connection.execute(
        "INSERT INTO folder (path, device, machine, host) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT (path) DO NOTHING",
        (str(resolved), resolved.stat().st_dev, machine(), host()),
    )
    return next(folder for folder in await all_folders(connection) if folder.path == resolved)


async def _claim(connection: AsyncConnection, folder: Folder) -> None:
    """A folder whose machine is not known is of the one that adds it again.

    Raises:
        FolderError: it is another machine's.
    """
    elsewhere = await foreign(connection, folder.id)
    if elsewhere:
        raise FolderError(
            elsewhere[folder.id], remedy="Another folder of the same path needs a database of its own."
        )
    await connection.execute(
        "UPDATE folder SET machine = %s, host = %s WHERE id = %s AND machine IS NULL",
        (machine(), host(), folder.id),
    )


async def remember_device(connection: AsyncConnection, folder: FolderId, device: int) -> None:
    """Note on which file system the folder's notes were seen."""
    await connection.execute(
        "UPDATE folder SET device = %s WHERE id = %s AND device IS DISTINCT FROM %s", (device, folder, device)
    )
