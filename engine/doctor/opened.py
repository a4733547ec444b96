"""What is looked at with the engine open: database, folders of notes, watching, languages, model."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.doctor.check import Check, State, failed, skipped
from engine.doctor.watching import watching_checks
from engine.errors import DatabaseError, ModelError, NoctuaryError, SettingsError
from engine.settings import mask
from engine.settings.paths import is_folder

if TYPE_CHECKING:
    from pathlib import Path

    from engine import Engine
    from engine.database import Database, OnState
    from engine.settings import Settings


@dataclass(frozen=True, slots=True)
class Opened:
    """What was found with the engine open. `model` is None when it did not open."""

    checks: list[Check]
    model: Check | None = None


async def open_and_look(settings: Settings, on_state: OnState) -> Opened:
    """Open the engine and look at what needs the database; and at the model that is chosen there.

    `on_state` hears what takes long, and an empty sentence when nothing is waited for any more.
    """
    from engine import Engine

    started = time.monotonic()
    try:
        engine = await Engine.open(settings, application="noctuary doctor", on_state=on_state)
    except NoctuaryError as error:
        return Opened(_not_opened(error))
    finally:
        on_state("")
    seconds = time.monotonic() - started
    try:
        return await _look(engine, settings, seconds)
    finally:
        await engine.close()


async def _look(engine: Engine, settings: Settings, seconds: float) -> Opened:
    foreign = await engine.notes.foreign()
    roots = [each.path for each in await engine.notes.folders() if each.id not in foreign]
    checks = [
        *_database(engine, seconds),
        *(Check("folder", State.WARN, reason) for reason in foreign.values()),
        *(_folder(root) for root in roots),
    ]
    if not roots and not foreign:
        remedy = "Add one: `noctuary folders add FOLDER`."
        checks.append(Check("folders", State.WARN, "There is none yet.", remedy))
    model = await model_check(settings, engine.database)
    language = await _language(engine)
    languages = await _languages(engine)
    checks += await asyncio.to_thread(lambda: [*watching_checks(settings, roots), languages, language])
    return Opened(checks, model)


def _not_opened(error: NoctuaryError) -> list[Check]:
    """What kept the engine from opening, under the name of the part it belongs to."""
    if isinstance(error, DatabaseError):
        return [failed("database", error), skipped("folders", "the database")]
    part = {SettingsError: "settings", ModelError: "model"}.get(type(error), error.title.lower())
    return [failed(part, error), skipped("database and folders", f"the {part}")]


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
    if not is_folder(root):
        return Check(
            "folder",
            State.FAIL,
            f"{root} is not there; its index is kept.",
            "Mount it, or forget it: `noctuary folders remove`.",
        )
    if not os.access(root, os.R_OK | os.X_OK):
        return Check("folder", State.FAIL, f"{root} cannot be read.", "Give yourself the right to.")
    return Check("folder", State.OK, f"{root} can be read.")


async def _languages(engine: Engine) -> Check:
    """Whether the model reads what the notes are written in."""
    await engine.notes.embedders.judge()
    suggestion = engine.notes.embedders.suggestion
    if suggestion:
        return Check("languages", State.WARN, suggestion)
    return Check("languages", State.OK, "The model reads the languages of the notes.")


async def _language(engine: Engine) -> Check:
    """Whether the language model can be had; that there is none is no fault."""
    from engine.notes.ask import check_prompt

    name, language = "language model", engine.language
    if not language.provider:
        return Check(name, State.OK, "None is set, and none is needed but for written answers.")
    try:
        check_prompt(engine.settings.prompt_version)
        found = await language.look()
    except NoctuaryError as error:
        return Check(name, State.WARN, mask(error.message), error.remedy)
    sentence = f"{' and '.join(found)} can be had."
    if language.limit:
        sentence += f" {await language.spent_today():,} of today's {language.limit:,} tokens are spent."
    return Check(name, State.OK, sentence)


async def model_check(settings: Settings, database: Database | None = None) -> Check:
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
        return failed("model", error)
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
