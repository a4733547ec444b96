"""What a long comparison tells while it runs, where nobody watches a terminal."""

from __future__ import annotations

import pytest

from engine.doors import progress
from engine.doors.progress import CompareBar
from engine.notes.model import CompareStep


@pytest.fixture
def due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every plain line is due."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)


def made(done: int, left: float | None = None, name: str = "e5") -> CompareStep:
    return CompareStep(name, embedding=True, done=done, total=1_500, seconds_left=left)


@pytest.mark.usefixtures("due")
def test_what_is_missing_is_said_before_and_how_long_it_takes_once_that_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with CompareBar() as bar:
        for step in (made(100), made(132), made(164, 300.0), made(196, 290.0)):
            bar(step)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "Vectors of e5 are missing for 1,400 of 1,500 passages: they are made first.",
        "Embedding for e5: 100 of 1,500",
        "Embedding for e5: 132 of 1,500",
        "That takes about 5 min. Ctrl-C stops; what is made by then is kept.",
        "Embedding for e5: 164 of 1,500",
        "Embedding for e5: 196 of 1,500",
    ]


def test_what_takes_no_minute_is_not_announced_and_each_model_is_told_by_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with CompareBar() as bar:
        for step in (made(100, 20.0), made(132, 3_000.0), made(0, name="b\x1b[2J")):
            bar(step)
    said = capsys.readouterr().err
    assert "That takes" not in said
    assert "Vectors of b\u241b[2J are missing for 1,500 of 1,500 passages" in said


@pytest.mark.usefixtures("due")
def test_a_terminal_gets_a_bar_in_which_a_name_steers_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with CompareBar() as bar:
        for done in (1, 2):
            bar(CompareStep("b\x1b[2J", embedding=False, done=done, total=2))
    shown = capsys.readouterr().err
    assert "Asking b\u241b[2J" in shown
    assert "2/2" in shown
    assert "\x1b[2J" not in shown
