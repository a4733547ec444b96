"""What every test of the screen has."""

from __future__ import annotations

import pytest

from tui import status_reader


@pytest.fixture(autouse=True)
def status_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause between two readings of the status only spares the database; no test waits for it."""
    monkeypatch.setattr(status_reader, "PAUSE_SECONDS", 0.05)
