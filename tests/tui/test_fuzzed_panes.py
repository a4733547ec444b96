"""Any text in any pane: no fault, nothing that steers a terminal, and every row as wide as the screen.

The engine's answers are made up; all that follows them is the console's own way to the screen. What is looked at
are the rows before the last line of defence, which would hide what was forgotten here.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as runs
from hypothesis import strategies as st
from rich.cells import cell_len
from textual import events

from engine.activity import LogRecord
from engine.errors import DatabaseUnavailable, NoteError
from engine.inbox import InboxItem
from engine.language import LedgerRow
from engine.notes.model import (
    Citation,
    DriftCause,
    DriftReport,
    DriftRow,
    EmbeddingProgress,
    Explanation,
    FailedPassage,
    Folder,
    FolderProblem,
    Freshness,
    FreshnessState,
    IndexCounts,
    Job,
    JobCounts,
    JobKind,
    JobStatus,
    Mode,
    NotesStatus,
    Preview,
    SearchResult,
    ServiceFault,
    WatchMode,
    WatchState,
)
from engine.notes.traced import Trace, TraceKind
from tests.hostile import PAYLOADS, STEERS
from tests.support import eventually
from tests.tui.desk import NOON, desk, write
from tui.messages import Flash
from tui.panes.base import FetchFailed
from tui.panes.search import SearchPane
from tui.paths import Completion
from tui.screens.dialog import Confirm, TextDialog
from tui.text import content

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.settings import Settings
    from tests.tui.desk import Desk

TEXTS = 16
"""Texts of one example, each somewhere else in it."""

letters = st.characters(exclude_categories=())  # halves of a pair too
texts = st.one_of(
    st.text(letters, max_size=30),
    st.text(
        "\x1b[]/\x07\x9b\u202e\u2066\u2028\t\n\r\u200b\u200d\ufe0f\u0301日👩🇩🇪א\udcff\0ab :", max_size=40
    ),
    st.sampled_from(list(PAYLOADS.values())).map(lambda payload: payload[:400]),
    st.builds(lambda text: text * 60, st.text(letters, min_size=1, max_size=8)),
)


def examples(number: int = 4) -> list[list[str]]:
    """The same ones in every run: so many times so many texts."""
    found: list[str] = []

    @runs(
        max_examples=number * TEXTS,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts)
    def gather(text: str) -> None:
        found.append(text)

    gather()
    return [found[at : at + TEXTS] for at in range(0, len(found) - TEXTS + 1, TEXTS)]


async def press(screen: Desk, keys: str) -> None:
    """Press keys, and wait until they were answered; less patiently than `Desk.press`, which waits for news too."""
    await screen.pilot.press(*keys.split())
    await rest(screen)


async def rest(screen: Desk) -> None:
    search = screen.pane(SearchPane)
    await screen.pilot.pause()
    await eventually(lambda: not screen.app.busy and search._typing is None and search._resting is None)
    await screen.pilot.pause()


def look(screen: Desk, example: Sequence[str]) -> None:
    """Every row of the screen is text, and takes the whole width and no more."""
    width, _ = screen.app.size
    for row in screen.app.screen._compositor.render_strips():
        assert not STEERS.search(row.text), ascii((row.text, example))
        assert sum(cell_len(segment.text) for segment in row) == width, ascii((row.text, example))
        # What stands at the end of a line that is typed may wait for what it joins.
        assert cell_len(row.text.replace("\u200d ", " ")) == width, ascii((row.text, example))


@pytest.fixture
async def screen(settings: Settings, tmp_path: Path) -> Any:
    async with desk(settings, write(tmp_path / "vault", {"a.md": "owl\n"}), now=lambda: NOON) as opened:
        yield opened


def cycle(example: Sequence[str]) -> Iterator[str]:
    while True:
        yield from example


def answers(value: object) -> Any:
    async def answer(*_arguments: object, **_options: object) -> object:
        return value

    return answer


async def test_jobs(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await press(screen, "3")
    for example in examples():
        one = cycle(example)
        jobs = [
            Job(
                number,
                JobKind.INGEST_PATH,
                status,
                Path(next(one)),
                next(one),
                3,
                next(one),
                NOON,
                NOON,
                NOON,
                next(one),
            )
            for number, status in enumerate([*JobStatus] * 4)
        ]
        passages = [
            FailedPassage(number, Path(next(one)), next(one), 1, 2, next(one)) for number in range(TEXTS)
        ]
        notes = screen.engine.notes
        monkeypatch.setattr(notes, "jobs", answers(jobs))
        monkeypatch.setattr(notes, "job_counts", answers(JobCounts(1, 2, 3, 4, 5.0)))
        monkeypatch.setattr(notes, "failed_passages", answers(passages))
        monkeypatch.setattr(notes, "failed_passage_count", answers(8))
        for keys in ("R j", "i", "q r", "n s s s", "s s", "G i", "q s"):
            await press(screen, keys)
            look(screen, example)


async def test_drift(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await press(screen, "4")
    for example in examples():
        one = cycle(example)
        rows = tuple(
            DriftRow(cause, Path(next(one)), next(one), next(one), NOON) for cause in [*DriftCause] * 4
        )
        problems = tuple(FolderProblem(Path(next(one)), next(one)) for _ in range(2))
        report = DriftReport(NOON, rows, 5, 5, 0.1, problems)
        monkeypatch.setattr(screen.engine.notes, "drift", answers(report))
        for keys in ("R G", "r", "n c"):
            await press(screen, keys)
            look(screen, example)


async def test_log(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await press(screen, "8")
    for example in examples():
        one = cycle(example)
        records = [
            LogRecord(
                NOON + timedelta(seconds=number), ("error", next(one))[number % 2], next(one), next(one)
            )
            for number in range(30)
        ]
        monkeypatch.setattr(screen.engine.log, "history", lambda records=records: records)
        for keys in ("R g", "k l", "l l"):
            await press(screen, keys)
            look(screen, example)


async def test_queries_and_tokens(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await press(screen, "8")
    for example in examples():
        one = cycle(example)
        traces = [
            Trace(
                [*TraceKind][number % 2],
                next(one),
                next(one),
                number % 3,
                10.0 ** (number - 3),
                answered=number % 3 > 1,
                model=next(one),
                provider=next(one),
                prompt_version=next(one),
                prompt_tokens=10**number,
                completion_tokens=7,
                trouble=next(one) * (number % 2),
                at=NOON - timedelta(hours=number),
                id=number,
            )
            for number in range(TEXTS)
        ]
        days = [
            LedgerRow(
                NOON.date(),
                next(one),
                next(one),
                next(one),
                10**number,
                number,
                10**number,
                7,
                estimated=number > 3,
            )
            for number in range(9)
        ]
        monkeypatch.setattr(screen.engine.traces, "recent", answers(traces))
        monkeypatch.setattr(screen.engine.language, "ledger", answers(days))
        for keys in ("s R", "g", "l j", "t R", "G j", "s"):
            await press(screen, keys)
            look(screen, example)
        for _ in range(TEXTS):
            await press(screen, "k")
            look(screen, example)
        await press(screen, "G enter")
        look(screen, example)
        await press(screen, "escape 8")


async def test_inbox_status_line_and_flashes(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await press(screen, "1")
    for number, example in enumerate(examples()):
        one = cycle(example)
        items = [InboxItem(next(one), next(one), 7, NOON, pane) for pane in ("jobs", "log", next(one))]
        monkeypatch.setattr(screen.engine.inbox, "items", answers(items))
        progress = EmbeddingProgress(
            next(one),
            3,
            number % 2,
            1,
            proven=True,
            trouble=next(one) * (number % 3),
            serving=next(one) * (number % 2),
        )
        watchers = tuple(
            WatchState(Path(next(one)), mode, NOON, next(one), next(one), WatchMode.POLLING)
            for mode in WatchMode
        )
        faults = (ServiceFault(next(one), next(one), NOON),) * (number % 3)
        status = NotesStatus(watchers, JobCounts(1, 2, 3, 4), progress, IndexCounts(1, 2, 3, 4), faults)
        monkeypatch.setattr(screen.engine.notes, "status", answers(status))
        screen.app.status_reader.now()
        for keys in ("R j", "3", "1"):
            await press(screen, keys)
            look(screen, example)
        screen.app._main.flash(next(one), error=True)
        screen.app.engine_failed((DatabaseUnavailable, NoteError)[number % 2](next(one)))
        await rest(screen)
        look(screen, example)


async def test_search(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await press(screen, "2")
    for number, example in enumerate(examples()):
        one = cycle(example)
        explanation = Explanation(1, 0.5, None, None, 0.25)
        citations = tuple(
            Citation(
                Path(next(one)), next(one), 1, 10**at, text, 0.5, 0.5, (next(one), next(one)),
                tuple((start, start + 5) for start in range(0, len(text), 9)), at, explanation,
            )
            for at, text in enumerate(example)
        )  # fmt: skip
        moved = Freshness(FreshnessState.MOVED, 3, 9)
        lines = tuple(line for text in example for line in text.split("\n"))
        notes = screen.engine.notes
        monkeypatch.setattr(
            notes, "search", answers(SearchResult(next(one), Mode.HYBRID, citations, 0.1, (next(one),)))
        )
        monkeypatch.setattr(notes, "freshness", answers(moved))
        monkeypatch.setattr(notes, "preview", answers(Preview(1, lines, (2, 4), moved)))
        monkeypatch.setattr(notes, "folders", answers([Folder(at, Path(next(one)), NOON) for at in range(3)]))
        screen.app.post_message(events.Paste(f"{number} {next(one)}"))
        await rest(screen)
        assert len(screen.up.list.citations) == TEXTS
        look(screen, example)
        for keys in ("down x", "v", "G", "v space G", "f y", "slash up", "ctrl+u"):
            await press(screen, keys)
            look(screen, example)


async def test_folders_and_their_questions(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for example in examples(3):
        one = cycle(example)
        folders = [Folder(at, Path(next(one)), NOON, at) for at in range(6)]
        watchers = tuple(
            WatchState(folder.path, mode, NOON, next(one), next(one))
            for folder, mode in zip(folders, WatchMode, strict=True)
        )
        monkeypatch.setattr(screen.engine.notes, "folders", answers(folders))
        monkeypatch.setattr(screen.engine.notes, "status", answers(NotesStatus(watchers)))
        found = Completion(next(one), tuple(example))
        monkeypatch.setattr("tui.screens.add_folder.complete", lambda _typed, found=found: found)
        for keys in ("F", "G d", "n", "a down down", "tab", "enter", "escape q"):
            await press(screen, keys)
            look(screen, example)


async def test_dialogs_errors_and_what_is_typed(screen: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, example in enumerate(examples(2)):
        one = cycle(example)
        app, pane = screen.app, screen.app.panes[2]
        for dialog in (
            TextDialog(next(one), content("\n".join(example))),
            Confirm(next(one), "jobs.retry", detail=next(one)),
        ):
            app.push_screen(dialog)
            await rest(screen)
            look(screen, example)
            await press(screen, "escape")
        app._main.show_error(NoteError(next(one), remedy=next(one)))
        await rest(screen)
        look(screen, example)
        await press(screen, "escape 3")
        pane.post_message(FetchFailed(NoteError(next(one))))
        pane.post_message(Flash(next(one)))
        await rest(screen)
        look(screen, example)
        for keys in ("slash", "8 slash", "colon", "2 p", "escape slash"):
            await press(screen, keys)
            app.post_message(events.Paste(f"{number}{next(one)}"))
            await rest(screen)
            look(screen, example)
            await press(screen, "home end enter" if keys == "2 p" else "escape")


async def test_the_history_of_queries(screen: Desk) -> None:
    for example in examples(1):
        await press(screen, "2 ctrl+u")
        for text in example:
            screen.up.input.history.add(text)
        for _ in range(TEXTS):
            await press(screen, "up")
            look(screen, example)
