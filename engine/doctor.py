"""The examination of an installation: each part is tried for real and answers with one sentence.

A part that cannot be tried because another is broken says so and counts as a warning: the failure
to mend is the other's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from engine.activity import LOG_FILE
from engine.errors import DatabaseError, ModelError, NoctuaryError, SettingsError
from engine.settings import Settings, mask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine import Engine
    from engine.database import Database

LOW_DISK_BYTES = 500 * 1024 * 1024
"""PostgreSQL goes down when its disk is full; below this there is no room for a large folder's index."""

INOTIFY = Path("/proc/sys/fs/inotify")
COUNT_SECONDS = 5.0
"""Counting folders on a slow network mount is given up after this."""


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One part: its state, a sentence on what was found, and what to do if anything."""

    name: str
    state: State
    sentence: str
    remedy: str = ""


async def examine(check_keys: Callable[[Mapping[str, str]], object] | None = None) -> list[Check]:
    """Try settings, disk, database, folders, watching and model, in the order in which they depend.

    `check_keys` is of the console, which alone knows which keys there are and which may not be shared.
    """
    try:
        settings = Settings.load()
    except NoctuaryError as error:
        return [_failed("settings", error), _skipped("everything else", "the settings")]
    checks = [*_settings(settings), _disk(settings), _state(settings)]
    if check_keys is not None:
        checks.insert(1, _keys(settings, check_keys))
    places = settings.paths.locations()
    unmade = [name for name in ("data", "state") if not places[name].is_dir()]
    if unmade:
        checks.append(_skipped("database and folders", f"the {unmade[0]} folder"))
        opened = None
    else:
        found, opened = await _engine(settings)
        checks += found
    checks.append(opened or await _model(settings))
    return checks


def _failed(name: str, error: NoctuaryError) -> Check:
    return Check(name, State.FAIL, mask(error.message), error.remedy)


def _skipped(name: str, needed: str) -> Check:
    return Check(name, State.WARN, f"Not tried: it needs {needed}.")


def _settings(settings: Settings) -> Iterator[Check]:
    count = len(settings.sources)
    yield Check("settings", State.OK, f"All valid; {count} given, the others at their defaults.")
    for caution in settings.cautions:
        yield Check("settings", State.WARN, caution)
    if settings.ignored:
        yield Check(
            "settings",
            State.OK,
            f"{len(settings.ignored)} lines of a .env file are not for Noctuary and are ignored.",
        )
    try:
        editor = settings.editor_command()
    except NoctuaryError as error:
        yield Check("editor", State.WARN, error.message, error.remedy)
        return
    if shutil.which(editor[0]):
        yield Check("editor", State.OK, f"{' '.join(editor)} ({settings.source('editor')}).")
    else:
        yield Check(
            "editor", State.WARN, f"{editor[0]} is not installed.", "Set $EDITOR, or editor in config.toml."
        )


def _keys(settings: Settings, check_keys: Callable[[Mapping[str, str]], object]) -> Check:
    try:
        check_keys(settings.keymap)
    except SettingsError as error:
        return _failed("keys", error)
    changed = len(settings.keymap)
    return Check("keys", State.OK, f"{changed} changed in config.toml." if changed else "As they come.")


def _disk(settings: Settings) -> Check:
    try:
        folder = settings.paths.data
    except NoctuaryError as error:
        return _failed("data folder", error)
    if (refused := _unwritable("data folder", folder)) is not None:
        return refused
    free = shutil.disk_usage(folder).free
    sentence = f"{folder} has {free / 1024**3:.1f} GB free."
    if free < LOW_DISK_BYTES:
        return Check("data folder", State.WARN, sentence, "Free some space: a full disk stops the database.")
    return Check("data folder", State.OK, sentence)


def _state(settings: Settings) -> Check:
    """Whether the log and the history of searches can be kept."""
    try:
        folder = settings.paths.state
    except NoctuaryError as error:
        return _failed("state folder", error)
    log = folder / LOG_FILE
    for path in (folder, *([log] if log.exists() else [])):
        if (refused := _unwritable("state folder", path)) is not None:
            return refused
    return Check("state folder", State.OK, f"{folder} can be written; the log is {log.name} in it.")


def _unwritable(name: str, path: Path) -> Check | None:
    """A failure that names the path and why it cannot be written; None when it can."""
    needed = os.W_OK | (os.X_OK if path.is_dir() else os.R_OK)
    if os.access(path, needed):
        return None
    return Check(
        name,
        State.FAIL,
        f"{path} cannot be written.",
        "Give yourself the right to (a file system may be mounted read-only), or name another folder by"
        f" XDG_{name.partition(' ')[0].upper()}_HOME.",
    )


async def _engine(settings: Settings) -> tuple[list[Check], Check | None]:
    """Open the engine and look at what needs the database; and at the model that is chosen there."""
    from engine import Engine

    started = time.monotonic()
    try:
        engine = await Engine.open(settings, application="noctuary doctor")
    except NoctuaryError as error:
        return _not_opened(error), None
    try:
        checks = _database(engine, time.monotonic() - started)
        foreign = await engine.notes.foreign()
        roots = [each.path for each in await engine.notes.folders() if each.id not in foreign]
        model = await _model(settings, engine.database)
        languages = await _languages(engine)
    finally:
        await engine.close()
    checks += [Check("folder", State.WARN, reason) for reason in foreign.values()]
    checks += [_folder(root) for root in roots]
    if not roots and not foreign:
        remedy = "Add one: `noctuary folders add FOLDER`."
        checks.append(Check("folders", State.WARN, "There is none yet.", remedy))
    checks += await asyncio.to_thread(_watching, settings, roots)
    return [*checks, *languages], model


def _not_opened(error: NoctuaryError) -> list[Check]:
    """What kept the engine from opening, under the name of the part it belongs to."""
    if isinstance(error, DatabaseError):
        return [_failed("database", error), _skipped("folders", "the database")]
    part = {SettingsError: "settings", ModelError: "model"}.get(type(error), error.title.lower())
    return [_failed(part, error), _skipped("database and folders", f"the {part}")]


def _database(engine: Engine, seconds: float) -> list[Check]:
    """The server as it answered; what it lacks (version, extension, locale) comes as its warnings."""
    info = engine.database.info
    kind = "embedded" if info.embedded else f"from {engine.settings.source('database_url')}"
    sentence = (
        f"PostgreSQL {info.version}, pgvector {info.pgvector}, {kind}, at {mask(info.location)}; "
        f"open in {seconds:.1f} s."
    )
    if not info.warnings:
        sentence += " Version, extension and locale are as they should be."
    return [
        Check("database", State.OK, sentence),
        *(Check("database", State.WARN, mask(warning)) for warning in info.warnings),
    ]


def _folder(root: Path) -> Check:
    if not root.is_dir():
        return Check(
            "folder",
            State.FAIL,
            f"{root} is not there; its index is kept.",
            "Mount it, or forget it: `noctuary folders remove`.",
        )
    if not os.access(root, os.R_OK | os.X_OK):
        return Check("folder", State.FAIL, f"{root} cannot be read.", "Give yourself the right to.")
    return Check("folder", State.OK, f"{root} can be read.")


def _watching(settings: Settings, roots: list[Path]) -> Iterator[Check]:
    """How changes below each root are noticed."""
    from engine.notes.watcher import remote_kind

    source, polling = settings.source("watch"), f"polling every {settings.poll_interval:g} s"
    if settings.watch == "polling":
        yield Check("watching", State.OK, f"By {polling} ({source}).")
        return
    remote = {root: kind for root in roots if (kind := remote_kind(root))}
    forced = settings.watch == "events"
    missing = f"by events, as {source} says; some will be missed"
    for root, kind in remote.items():
        how = missing if forced else f"by {polling}"
        state = State.WARN if forced else State.OK
        yield Check("watching", state, f"{root} lies on a network file system ({kind}): {how}.")
    local = roots if forced else [root for root in roots if root not in remote]
    if local or not roots:
        yield _by_events(local)


def _by_events(roots: list[Path]) -> Check:
    """Whether every folder below the roots can be watched by events."""
    if not sys.platform.startswith("linux"):
        return Check("watching", State.OK, "By events of the system.")
    try:
        limit = int((INOTIFY / "max_user_watches").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        return Check("watching", State.WARN, f"The inotify limit cannot be read: {error}.")
    needed = _count_folders(roots)
    sentence = f"By events; folders to watch: {needed:,}, at most {limit:,} can be."
    if needed < limit:
        return Check("watching", State.OK, sentence)
    return Check(
        "watching",
        State.WARN,
        f"{sentence} The rest is noticed by polling.",
        f"As root: sysctl fs.inotify.max_user_watches={max(2 * needed, 524_288)}",
    )


def _count_folders(roots: list[Path]) -> int:
    deadline = time.monotonic() + COUNT_SECONDS
    count = 0
    for root in roots:
        for _folder_path, _folders, _files in os.walk(root):
            count += 1
            if time.monotonic() > deadline:
                return count
    return count


async def _languages(engine: Engine) -> list[Check]:
    """Whether the model reads what the notes are written in."""
    await engine.notes.embedders.judge()
    suggestion = engine.notes.embedders.suggestion
    if suggestion:
        return [Check("languages", State.WARN, suggestion)]
    return [Check("languages", State.OK, "The model reads the languages of the notes.")]


async def _model(settings: Settings, database: Database | None = None) -> Check:
    """The model of the settings, or as chosen in the database, asked for a vector."""
    from engine.models.embedding import open_embedder
    from engine.notes.embedders import wanted

    started = time.monotonic()
    try:
        embedder = open_embedder(settings) if database is None else await wanted(database, settings)
        try:
            await embedder.ready()
            vector = await embedder.query("Does the model answer?")
        finally:
            await embedder.close()
    except NoctuaryError as error:
        return _failed("model", error)
    seconds = time.monotonic() - started
    if len(vector) != embedder.dimension:
        return Check(
            "model",
            State.FAIL,
            f"{embedder.model_id} gave {len(vector)} numbers, not {embedder.dimension}.",
            "Install Noctuary again.",
        )
    return Check(
        "model",
        State.OK,
        f"{embedder.model_id} made a vector of {embedder.dimension} in {seconds:.1f} s, loading included.",
    )
