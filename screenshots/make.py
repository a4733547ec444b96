# ruff: noqa: INP001  (a script, not a package)
"""Writes screenshots/*.svg from the running app on a small made-up vault.

Run it from the project: `PYTHONPATH=. python screenshots/make.py`. Everything that would differ from run to
run (the place of the vault, times, the log) is made the same each time, in the data, so that the pictures
differ only when the screen does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine.notes.answered import Answer
from engine.settings import Settings
from tests.scripted_llm import Reply, ScriptedLLM
from tests.tui.made_up_lessons import make_up
from tui.app import NoctuaryApp

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from textual.pilot import Pilot

    from engine import Engine
    from engine.notes.answered import AskStep
    from engine.notes.evaluated import EvalRun
    from engine.notes.model import DriftReport, SearchResult

HERE = Path(__file__).parent
PLACE = Path(tempfile.gettempdir()) / "noctuary-screenshots"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
NARROW, WIDE = (80, 24), (120, 36)

NOTES = {
    "birds/barn-owl.md": "# Barn owl\n\nThe barn owl hunts at night and hears a mouse under the snow.\n\n"
    "## Hearing\n\nIts ears stand at different heights, so it knows how high a sound comes from.\n",
    "birds/tawny-owl.md": "# Tawny owl\n\nThe tawny owl calls from October on.\nIt breeds in hollow trees.\n",
    "birds/nightjar.md": "# Nightjar\n\nA nightjar rests on the ground by day and hunts moths at dusk.\n",
    "garden/moths.md": "# Moths\n\nWhite flowers that open at dusk bring moths: evening primrose, tobacco.\n",
    "garden/compost.md": "# Compost\n\n- two parts brown, one part green\n- turn it every two weeks\n",
    "work/deploy.md": "# Deploying\n\nRun the migration first, then restart the workers.\n\n"
    "## Rollback\n\n```sh\nmake rollback VERSION=1.0.21\n```\n",
    "work/meetings/2026-02-12.md": "# Planning\n\nWe agreed to review what agents learned every Friday.\n",
    "work/meetings/2026-02-26.md": "# Review\n\nThe backlog of lessons is empty for the first time.\n",
    "reading/sleep.md": "# Why we sleep\n\nDreams replay the day and keep what was surprising.\n",
    "reading/memory.md": "# Memory\n\nRecall strengthens what is recalled; what is not recalled fades.\n",
}
BROKEN = {"reading/old-export.md": "notes of 2009".encode("utf-16"), "work/dump.md": b"a\0b\0c\0"}

TIMES = """
    UPDATE job SET created_at = %(noon)s - interval '1 minute' * (100 - id),
        started_at = started_at + (%(noon)s - interval '1 minute' * (100 - id) - started_at),
        finished_at = finished_at + (%(noon)s - interval '1 minute' * (100 - id) - finished_at),
        worker = 'laptop:4711'
"""
LOG = (
    (logging.INFO, "watcher", "~/notes: watching by events"),
    (logging.INFO, "watcher", "~/notes: 12 paths queued"),
    (logging.INFO, "worker", "indexed 10, unchanged 0, deleted 0, new passages 13"),
    (logging.ERROR, "worker", "reading/old-export.md: encoded as UTF-16, not UTF-8. Save it as UTF-8."),
    (logging.ERROR, "worker", "work/dump.md: holds a NUL byte and is no text."),
    (logging.INFO, "embedder", "13 passages embedded in 0.2 s"),
)


ANSWER = (
    "The barn owl hunts at night and hears a mouse under the snow [1]. ",
    "A nightjar rests by day and hunts moths at dusk [2].",
)
SAID = (
    "pnpm, please. We left npm behind in all projects, and CI has no npm any more.",
    "Again npm in your script! I told you: use pnpm.",
)
"""What the lessons of the picture came from."""

QUESTIONS = (
    ("owl-night", "which owl hunts at night", "birds/barn-owl.md"),
    ("rollback", "how to roll back a deployment", "work/deploy.md"),
    ("moths", "what brings moths to a garden", "garden/moths.md"),
    ("compost", "how often to turn compost", "garden/compost.md"),
    ("friday", "what do we do every Friday", "work/meetings/2026-02-26.md"),
)
PAST = (3, 2, 1, 0, 1)
"""Questions that failed, run by run."""


def settings() -> Settings:
    """A fresh installation whose watcher polls so rarely that drift stays to be seen."""
    shutil.rmtree(PLACE, ignore_errors=True)
    for name, text in {**NOTES, **BROKEN}.items():
        file = PLACE / "notes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(file, (NOON.timestamp(), NOON.timestamp()))
    places = {
        f"XDG_{name}_HOME": str(PLACE / ".xdg" / name.lower())
        for name in ("DATA", "CONFIG", "STATE", "CACHE")
    }
    polling = {"NOCTUARY_WATCH": "polling", "NOCTUARY_POLL_INTERVAL": "3600"}
    return Settings.load({"PATH": os.environ["PATH"], "HOME": str(PLACE), **places, **polling}, cwd=PLACE)


class Camera:
    """Presses keys and takes pictures."""

    def __init__(self, app: NoctuaryApp, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    async def settle(self) -> None:
        """Until nothing is under way."""
        calm = 0
        while calm < 2:  # a message handled may ask for more
            await self._pilot.pause(0.05)
            calm = 0 if self.app.busy else calm + 1

    async def press(self, *keys: str) -> None:
        """Press keys and wait for what they do."""
        for key in keys:
            await self._pilot.press(key)
        await self.settle()

    async def shoot(self, name: str, size: tuple[int, int] = WIDE) -> None:
        """Write one picture."""
        await self._pilot.resize_terminal(*size)
        await self.settle()
        svg = self.app.export_screenshot(title="noctuary")
        number = re.compile(r"terminal-\d+-")  # made from a checksum of the picture
        (HERE / f"{name}.svg").write_text(number.sub("terminal-", svg), encoding="utf-8")


async def same_each_time(app: NoctuaryApp) -> None:
    """Numbers and times of the jobs, the log, and how long things took, made the same in every run."""
    engine = app.engine
    if engine is None:
        raise RuntimeError(f"The engine did not open: see the log in {PLACE}")
    await engine.notes.work_until_idle()
    async with engine.database.connection() as connection:
        await connection.execute("DELETE FROM job")
    for name in sorted({**NOTES, **BROKEN}):
        await engine.notes.ingest(PLACE / "notes" / name)
        await engine.notes.work_until_idle()
    async with engine.database.connection() as connection:
        await connection.execute(TIMES, {"noon": NOON})
    engine.log._records.clear()  # noqa: SLF001  (the log itself never forgets)
    for number, (level, source, text) in enumerate(LOG):
        record = logging.LogRecord(f"noctuary.{source}", level, "", 0, text, None, None)
        record.created = (NOON + timedelta(seconds=number)).timestamp()
        engine.log.emit(record)
    search, drift = engine.notes.search, engine.notes.drift

    async def timed_search(*args: Any, **options: Any) -> SearchResult:  # noqa: ANN401  (passed on)
        return replace(await search(*args, **options), seconds=0.012)

    async def timed_drift() -> DriftReport:
        return replace(await drift(), at=NOON)

    vars(engine.notes).update(search=timed_search, drift=timed_drift)
    stream = engine.asking.stream

    async def timed_stream(*args: Any, **options: Any) -> AsyncGenerator[AskStep, None]:  # noqa: ANN401
        async for step in stream(*args, **options):
            yield replace(step, seconds=2.4) if isinstance(step, Answer) else step

    vars(engine.asking).update(stream=timed_stream)


async def evaluated(engine: Engine) -> None:
    """Runs of labelled questions, the last with one that fails."""
    evaluation, file = engine.evaluation, PLACE / "eval.json"
    last, history = evaluation.last, evaluation.history
    for failing in PAST:
        rows = [
            {"id": id_, "question": question, "expect": "citation", "expect_path_contains": path}
            for id_, question, path in QUESTIONS
        ]
        for row in rows[:failing]:
            row["expect_path_contains"] = "gone.md"
        file.write_text(json.dumps(rows), encoding="utf-8")
        await evaluation.run(file)

    async def steady_last() -> EvalRun | None:
        run = await last()
        return run and replace(run, at=NOON, dataset="~/eval.json")

    async def steady_history(limit: int, _dataset: str | None = None) -> list[EvalRun]:
        return await history(limit)

    vars(evaluation).update(last=steady_last, history=steady_history)


def let_it_drift() -> None:
    """Edits that the index does not know of."""
    notes = PLACE / "notes"
    (notes / "birds/kestrel.md").write_text("# Kestrel\n\nIt hovers.\n", encoding="utf-8")
    (notes / "garden/compost.md").write_text("# Compost\n\nTurn it every week.\n", encoding="utf-8")
    (notes / "reading/sleep.md").unlink()
    for name in ("birds/kestrel.md", "garden/compost.md"):
        os.utime(notes / name, (NOON.timestamp(), NOON.timestamp()))


async def tour(camera: Camera) -> None:
    """Every pane, then the help and the palette."""
    await same_each_time(camera.app)
    await camera.press("R")
    await camera.shoot("inbox", NARROW)
    await camera.press("2", *"bird hunting at night")
    await camera.shoot("search")
    await camera.press("enter", "a")
    await camera.shoot("answer")
    await camera.press("escape", "escape", "3", "s", "s", "s", "i")
    await camera.shoot("job", NARROW)
    await camera.press("escape", "s", "s")
    await asyncio.to_thread(let_it_drift)
    await camera.press("4", "R", "space")
    await camera.shoot("drift")
    await camera.press("space", "5", "j", "d", "d", "k", "k", "k")
    await camera.shoot("lessons")
    await camera.press("8")
    await camera.shoot("log", NARROW)
    if camera.app.engine is not None:
        await evaluated(camera.app.engine)
    await camera.press("E")
    await camera.shoot("eval", NARROW)
    await camera.press("escape", "3")
    await camera.shoot("jobs")
    await camera.press("question_mark")
    await camera.shoot("help")
    await camera.press("escape", "colon", *"fol")
    await camera.shoot("palette", NARROW)


async def main() -> None:
    """Open the app on the vault and take all pictures."""
    os.environ["TZ"] = "UTC"
    os.environ["HOME"] = str(PLACE)
    make_up(pytest.MonkeyPatch(), said=SAID)
    first = NoctuaryApp(settings(), now=lambda: NOON)
    async with first.run_test(size=NARROW) as pilot:
        await Camera(first, pilot).shoot("first-run", NARROW)
    async with ScriptedLLM() as llm:
        llm.always = Reply(ANSWER, tokens=(412, 38))
        asked = {**llm.settings("ollama"), "chat_model": "qwen3:4b-instruct"}
        app = NoctuaryApp(replace(settings(), **asked), PLACE / "notes", now=lambda: NOON)
        async with app.run_test(size=WIDE) as pilot:
            camera = Camera(app, pilot)
            await camera.settle()
            await tour(camera)
    shutil.rmtree(PLACE, ignore_errors=True)


if __name__ == "__main__":
    asyncio.run(main())
