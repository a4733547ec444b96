"""A command line in an installation of its own, as the tests of the commands type it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.doors import cli, exits

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NOTES = {
    "log.md": "# Log\n\nThe heron stood in the ford.\n\n## Evening\n\nA second heron came.\n",
    "work/plan.md": "# Plan\n\nBuy a lantern for the heron walk.\n",
    "empty.md": "",
}


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Line:
    """A command line in an installation of its own, with a folder of notes."""

    def __init__(self, notes: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.notes = notes
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Outcome:
        status = cli.run(arguments)
        said = self._capsys.readouterr()
        return Outcome(status, said.out, said.err)

    def write(self, path: str, text: str | bytes) -> None:
        file = self.notes / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())

    def index(self, status: int = exits.DONE) -> Outcome:
        outcome = self("index", str(self.notes), "--no-embed", "--json")
        assert outcome.status == status, outcome
        return outcome

    def search(self, *arguments: str) -> Outcome:
        return self("search", *arguments, "--mode", "keyword")
