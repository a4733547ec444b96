"""What every test of the screen has."""

from __future__ import annotations

import pytest

from tui import status_reader


@pytest.fixture(autouse=True)
def status_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause between two readings of the status only spares the database; no test waits for it."""
    monkeypatch.setattr(status_reader, "PAUSE_SECONDS", 0.05)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was copied by OSC 52; no tool of this machine is asked."""
    for name in ("TMUX", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    texts: list[str] = []
    monkeypatch.setattr("textual.app.App.copy_to_clipboard", lambda _app, text: texts.append(text))
    return texts
